// Ends a run that makes no progress, after saying what this rank was doing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/time.hpp"
#include "base/units.hpp"

namespace lockstep::drive {

/// Calls `expired` once, on its own thread, when `kick` was not called for `timeout`. `expired` usually does not
/// return.
class Watchdog {
public:
    Watchdog(Seconds timeout, std::function<void()> expired);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    void kick() { kicks_.fetch_add(1, std::memory_order_relaxed); }

private:
    void watch(Seconds timeout);

    std::function<void()> expired_;
    std::atomic<std::int64_t> kicks_{0};
    std::mutex mutex_;
    std::condition_variable ending_changed_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace lockstep::drive
