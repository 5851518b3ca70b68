// When device events happened, on the host's clock.
#pragma once

#include <cuda_runtime_api.h>

#include "base/time.hpp"
#include "gpu/handles.hpp"

namespace lockstep::gpu {

/// Times between two timing events of a device, both complete; resolution about 0.5 us.
Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to);

/// Follows a chain of anchor events, one per step, and keeps it on the host's clock: a device's clock drifts from its
/// host's by tens of microseconds a second. The correction is spread over the steps that follow (at most 200 us per
/// second), so that time never runs backwards.
class DeviceClock {
public:
    /// `epoch` on world::steady_now(): times count from there.
    explicit DeviceClock(Nanoseconds epoch);

    /// The next anchor, complete, and later than the one before; the event must stay until the next but one call.
    void advance(cudaEvent_t anchor);
    /// Time of a complete event near the last anchor.
    Nanoseconds time(cudaEvent_t event) const;
    /// Looks at the host's clock beside an event on a stream that is otherwise empty: an event there does not wait for
    /// what other streams do. Takes some 20 us of the host.
    void align();

private:
    Nanoseconds epoch_;
    Stream stream_;
    Event look_;
    cudaEvent_t anchor_ = nullptr;
    Nanoseconds anchor_time_;
    double rate_ = 1;  // host seconds per device second, in the present step
};

}  // namespace lockstep::gpu
