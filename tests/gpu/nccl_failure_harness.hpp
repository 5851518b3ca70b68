// Operations that are going to fail, and what they say then.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "gpu/nccl_harness.hpp"

namespace lockstep::gpu::testing {

/// The message of the RuntimeError that f() throws.
template <class F>
std::string thrown(F&& f) {
    try {
        f();
    } catch (const RuntimeError& error) { return error.what(); }
    return "nothing was thrown";
}

inline double seconds_of(const std::function<void()>& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline step::Collective all_reduce_of(std::int64_t count) {
    return {step::CollectiveKind::all_reduce, step::CommunicatorId{0}, step::Reduction::sum, count, DType::fp32};
}

/// An all-reduce of a rank's own buffer.
struct AllReduce {
    explicit AllReduce(const Rank& r, std::int64_t count = 1000)
        : rank(r),
          data(DType::fp32, Values(static_cast<std::size_t>(count), 1.0F)),
          bound(r.graph, r.world.rank(), r.op(all_reduce_of(count), "bucket0.all_reduce"),
                {{data.operand()}, {{data.operand(), {}}}}, r.communicator()) {}
    ~AllReduce() { cudaStreamSynchronize(rank.stream.get()); }  // what is aborted leaves the stream
    void enqueue() const { bound.enqueue(rank.stream.get()); }
    void wait() const { rank.communicator().synchronize(rank.stream.get(), bound.description()); }

    const Rank& rank;
    Buffer data;
    Communication bound;
};

/// Waits for an error that comes by itself.
inline std::string error_within(NcclCommunicator& communicator, double seconds) {
    std::string error;
    for (double waited = 0; waited < seconds; waited += 0.001) {
        error = thrown([&] { communicator.throw_if_failed(); });
        if (error != "nothing was thrown") break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return error;
}

}  // namespace lockstep::gpu::testing
