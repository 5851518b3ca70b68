#include "drive/stop_signals.hpp"

#include <csignal>

#include "base/error.hpp"

namespace lockstep::drive {

namespace {

sigset_t stop_set() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

}  // namespace

StopSignals::StopSignals() {
    const sigset_t set = stop_set();
    if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0)
        throw RuntimeError("can't block signals (pthread_sigmask failed)");
    thread_ = std::thread([this] { wait_for_signals(); });
}

StopSignals::~StopSignals() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
}

void StopSignals::on_urgent(std::function<void()> action) {
    const std::lock_guard lock(mutex_);
    action_ = std::move(action);
}

void StopSignals::wait_for_signals() {
    const sigset_t set = stop_set();
    while (true) {
        int signal = 0;
        if (sigwait(&set, &signal) != 0) continue;
        if (ending_) return;
        if (signal == SIGUSR1) {
            auto expected = StopRequest::none;
            request_.compare_exchange_strong(expected, StopRequest::graceful);
            continue;
        }
        request_ = StopRequest::urgent;
        const std::lock_guard lock(mutex_);
        if (action_) action_();
        action_ = nullptr;
    }
}

}  // namespace lockstep::drive
