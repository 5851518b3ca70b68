// The signals that ask a run to end: USR1 gracefully, TERM and INT because something may kill it soon.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep::drive {

enum class StopRequest : int { none = 0, graceful = 1, urgent = 2 };

/// Blocks USR1, TERM and INT in the calling thread (and so in every thread made later) and takes them on a thread of
/// its own. Make it before MPI and before any other thread. One per process.
class StopSignals {
public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    StopRequest request() const { return request_.load(std::memory_order_relaxed); }
    /// Called once, on the signal thread, at the first TERM or INT; an empty function takes it back (and waits for a
    /// call in progress).
    void on_urgent(std::function<void()> action);

private:
    void wait_for_signals();

    std::atomic<StopRequest> request_{StopRequest::none};
    std::atomic<bool> ending_{false};
    std::mutex mutex_;
    std::function<void()> action_;
    std::thread thread_;
};

}  // namespace lockstep::drive
