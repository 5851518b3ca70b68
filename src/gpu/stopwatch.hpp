// How long work takes on the device, by events on a stream of its own.
#pragma once

#include <functional>

#include "base/units.hpp"
#include "gpu/handles.hpp"

namespace lockstep::gpu {

class Stopwatch {
public:
    /// `budget`: about as long as one measurement may take, its warm-up included.
    explicit Stopwatch(Seconds budget);

    cudaStream_t stream() const { return stream_.get(); }
    /// Enqueues one run of the work on the stream.
    using Enqueue = std::function<void(cudaStream_t)>;
    /// Time of one run when many follow one another: median over batches of runs of at least a millisecond each, so
    /// that the events' resolution of half a microsecond and the way of the first launch count little. One run warms
    /// up.
    Seconds time(const Enqueue& run) const;
    /// Host time to enqueue one run, while the device keeps up or has room for more.
    Seconds host_time(const Enqueue& run) const;

private:
    Seconds time_batch(const Enqueue& run, int runs) const;

    Seconds budget_;
    Stream stream_;
    Event begin_, end_;
};

}  // namespace lockstep::gpu
