#include "drive/watchdog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace lockstep::drive {
namespace {

TEST(Watchdog, barks_once_when_nobody_kicks) {
    std::atomic<int> barks = 0;
    Watchdog watchdog(Seconds{0.05}, [&] { ++barks; });
    for (int i = 0; i < 1000 && barks == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(barks, 1);
}

TEST(Watchdog, stays_silent_while_it_is_kicked_for_longer_than_its_timeout) {
    std::atomic<int> barks = 0;
    {
        Watchdog watchdog(Seconds{5}, [&] { ++barks; });
        for (int i = 0; i < 20; ++i) {
            watchdog.kick();
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    EXPECT_EQ(barks, 0);
}

}  // namespace
}  // namespace lockstep::drive
