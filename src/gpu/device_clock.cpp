#include "gpu/device_clock.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/cuda_check.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {
namespace {

/// An event on an empty stream and the host time it happened at.
struct Look {
    Nanoseconds host;
    Nanoseconds width;  ///< between the two looks at the host's clock
};

Look look_at(cudaStream_t stream, cudaEvent_t event) {
    const Nanoseconds before = world::steady_now();
    check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(event), "cudaEventSynchronize");
    const Nanoseconds after = world::steady_now();
    return {{before.count + (after - before).count / 2}, after - before};
}

Nanoseconds scaled(Nanoseconds t, double factor) {
    return {static_cast<std::int64_t>(std::llround(static_cast<double>(t.count) * factor))};
}

}  // namespace

Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime");
    return {static_cast<std::int64_t>(std::llround(static_cast<double>(milliseconds) * 1e6))};
}

DeviceClock::DeviceClock(Nanoseconds epoch)
    : epoch_(epoch), stream_(make_stream()), look_(make_event(EventUse::timing)) {}

void DeviceClock::advance(cudaEvent_t anchor) {
    if (anchor_ == nullptr) {
        anchor_ = anchor;
        const Look look = look_at(stream_.get(), look_.get());
        anchor_time_ = look.host - epoch_ - elapsed(anchor, look_.get());
        return;
    }
    anchor_time_ = anchor_time_ + scaled(elapsed(anchor_, anchor), rate_);
    anchor_ = anchor;
}

Nanoseconds DeviceClock::time(cudaEvent_t event) const { return anchor_time_ + scaled(elapsed(anchor_, event), rate_); }

void DeviceClock::align() {
    constexpr Nanoseconds good{40'000};
    constexpr double fastest = 2e-4, horizon_ns = 1e9;
    Look best{{}, {std::int64_t{1} << 62}};
    Nanoseconds error;
    for (int attempt = 0; attempt < 3 && best.width > good; ++attempt) {
        const Look look = look_at(stream_.get(), look_.get());
        if (look.width >= best.width) continue;
        best = look;
        error = (look.host - epoch_) - time(look_.get());
    }
    // What lies within the uncertainty of the look is no error.
    const double beyond =
        std::max(0.0, std::abs(static_cast<double>(error.count)) - static_cast<double>(best.width.count) / 2);
    rate_ = 1 + std::clamp(std::copysign(beyond, static_cast<double>(error.count)) / horizon_ns, -fastest, fastest);
}

}  // namespace lockstep::gpu
