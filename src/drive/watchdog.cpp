#include "drive/watchdog.hpp"

#include <chrono>
#include <utility>

namespace lockstep::drive {

Watchdog::Watchdog(Seconds timeout, std::function<void()> expired) : expired_(std::move(expired)) {
    thread_ = std::thread([this, timeout] { watch(timeout); });
}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    ending_changed_.notify_all();
    thread_.join();
}

void Watchdog::watch(Seconds timeout) {
    using Clock = std::chrono::steady_clock;
    const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout.value));
    auto last_change = Clock::now();
    std::int64_t last_kicks = kicks_.load();
    std::unique_lock lock(mutex_);
    while (!ending_) {
        ending_changed_.wait_for(lock, std::min<Clock::duration>(limit / 4, std::chrono::milliseconds(250)),
                                 [this] { return ending_; });
        const std::int64_t kicks = kicks_.load();
        if (kicks != last_kicks) {
            last_kicks = kicks;
            last_change = Clock::now();
        } else if (!ending_ && Clock::now() - last_change > limit) {
            lock.unlock();
            expired_();
            return;
        }
    }
}

}  // namespace lockstep::drive
