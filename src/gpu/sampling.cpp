#include "gpu/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "gpu/cuda_check.hpp"
#include "gpu/device_clock.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {

Seconds cost_of_an_event() {
    constexpr int events = 200;
    const Stream stream = make_stream();
    const Event first = make_event(EventUse::timing), last = make_event(EventUse::timing),
                between = make_event(EventUse::timing);
    Nanoseconds host, device;
    for (int round = 0; round < 2; ++round) {  // the first one warms up
        check_cuda(cudaEventRecord(first.get(), stream.get()), "cudaEventRecord");
        const Nanoseconds begin = world::steady_now();
        for (int i = 0; i < events; ++i) check_cuda(cudaEventRecord(between.get(), stream.get()), "cudaEventRecord");
        host = world::steady_now() - begin;
        check_cuda(cudaEventRecord(last.get(), stream.get()), "cudaEventRecord");
        check_cuda(cudaEventSynchronize(last.get()), "cudaEventSynchronize");
        device = elapsed(first.get(), last.get());
    }
    return std::max(host, device).seconds() / static_cast<double>(events);
}

void Sampling::step_took(std::int64_t step, Seconds time, world::World& world) {
    if (is_decided_) return;
    if (time.value > 0) shortest_ = std::min(time, shortest_.value_or(time));
    if (step != measured_steps - 1) return;
    const double share = shortest_ ? cost_ / *shortest_ : 0;
    auto every = static_cast<std::int32_t>(std::clamp(std::ceil(share / most_share), 1.0, 1e6));
    world.all_reduce(std::as_writable_bytes(std::span(&every, 1)), world::Number::i32, world::Reduce::max);
    every_ = every;
    is_decided_ = true;
}

}  // namespace lockstep::gpu
