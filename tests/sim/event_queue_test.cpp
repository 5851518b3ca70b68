#include "sim/event_queue.hpp"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::sim {
namespace {

TEST(EventQueue, gives_events_by_time) {
    EventQueue<int> queue;
    for (int t : {5, 1, 4, 2, 3}) queue.push(Picoseconds{t}, t);
    for (int t = 1; t <= 5; ++t) EXPECT_EQ(queue.pop().payload, t);
    EXPECT_TRUE(queue.is_empty());
}

TEST(EventQueue, gives_equal_times_in_the_order_they_were_pushed) {
    EventQueue<int> queue;
    for (int i = 0; i < 100; ++i) queue.push(Picoseconds{7}, i);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop().payload, i);
}

TEST(EventQueue, agrees_with_a_stable_sort_on_random_pushes_and_pops) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    EventQueue<int> queue;
    std::vector<std::pair<std::int64_t, int>> expected;  // (time, order of arrival)
    int order = 0;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 20; ++i) {
            const std::int64_t time = random() % 50;
            queue.push(Picoseconds{time}, order);
            expected.emplace_back(time, order++);
        }
        std::sort(expected.begin(), expected.end());
        for (int i = 0; i < 15; ++i) {
            const auto event = queue.pop();
            EXPECT_EQ(event.time.count, expected.front().first);
            EXPECT_EQ(event.payload, expected.front().second);
            expected.erase(expected.begin());
        }
    }
    EXPECT_EQ(queue.size(), expected.size());
    EXPECT_EQ(queue.pushed(), 4000u);
}

}  // namespace
}  // namespace lockstep::sim
