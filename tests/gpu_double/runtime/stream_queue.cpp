#include "gpu_double/runtime/stream_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "gpu_double/runtime/api.hpp"

namespace lockstep::gpu_double {

std::uint64_t StreamQueue::push(std::function<void()> work) {
    const auto delay = controls()->delay;
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), delay});
    changed_.notify_all();
    return ++pushed_;
}

std::uint64_t StreamQueue::last() const {
    const std::lock_guard lock(mutex_);
    return pushed_;
}

bool StreamQueue::reached(std::uint64_t position) const {
    const std::lock_guard lock(mutex_);
    return done_ >= position;
}

void StreamQueue::wait(std::uint64_t position) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= position; });
}

void StreamQueue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
}

void StreamQueue::run() {
    std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(this) >> 4));
    for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !queue_.empty() || closed_; });
        if (queue_.empty()) return;
        Item item = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        // This thread takes no lock but its own queue's, so that a thread sanitizer sees missing waits.
        if (item.delay.count() > 0) std::this_thread::sleep_for(item.delay * (random() % 1000) / 1000);
        try {
            item.work();
        } catch (const std::exception& error) {
            fmt::print(stderr, "test double: work on a stream failed: {}\n", error.what());
            fail_device(device_, cudaErrorLaunchFailure);
        }
        item.work = nullptr;  // what it holds is released before anyone is told that it is complete
        lock.lock();
        ++done_;
        changed_.notify_all();
    }
}

std::shared_ptr<StreamQueue> start_queue(int device, bool is_default) {
    auto queue = std::make_shared<StreamQueue>(device, is_default);
    std::thread([queue] { queue->run(); }).detach();
    return queue;
}

}  // namespace lockstep::gpu_double
