// A stream: work in order, on a thread of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::gpu_double {

/// Positions count pieces of work from 1. Work is complete once reached(its position).
class StreamQueue {
public:
    StreamQueue(int device, bool is_default) : device_(device), is_default_(is_default) {}

    std::uint64_t push(std::function<void()> work);
    std::uint64_t last() const;
    bool reached(std::uint64_t position) const;
    void wait(std::uint64_t position) const;
    bool idle() const { return reached(last()); }
    /// The thread ends after what has been pushed.
    void close();
    int device() const { return device_; }
    bool is_default() const { return is_default_; }

private:
    friend std::shared_ptr<StreamQueue> start_queue(int device, bool is_default);
    void run();

    int device_;
    bool is_default_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    struct Item {
        std::function<void()> work;
        std::chrono::microseconds delay;  ///< how long it may wait first
    };
    std::deque<Item> queue_;
    std::uint64_t pushed_ = 0, done_ = 0;
    bool closed_ = false;
};

/// A queue whose thread runs until close().
std::shared_ptr<StreamQueue> start_queue(int device, bool is_default);

/// Of a handle; null is the current device's default stream. Null, and a misuse reported, when there is none.
std::shared_ptr<StreamQueue> find_stream(cudaStream_t stream, const char* function);
/// The live streams of a device, and those that were destroyed before their work was complete.
std::vector<std::shared_ptr<StreamQueue>> streams_of(int device);

}  // namespace lockstep::gpu_double
