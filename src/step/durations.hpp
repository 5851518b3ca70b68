// How long ops take, whatever the source: a cost model, a record, or a world without communication cost.
#pragma once

#include "base/units.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

/// A collective or message alone on its links: a fixed delay, then a transfer whose rate may be shared.
struct CommunicationTime {
    Seconds latency;
    Seconds transfer;
};

class Durations {
public:
    virtual ~Durations() = default;
    /// On the device of `rank`, alone.
    virtual Seconds compute(const StepGraph& graph, int rank, const OpInstance& op) const = 0;
    /// Of the communication that `rank` takes part in.
    virtual CommunicationTime communication(const StepGraph& graph, int rank, const OpInstance& op) const = 0;
    /// Share of compute speed lost while communication runs on the same device, 0 .. 1.
    virtual double compute_slowdown() const = 0;
};

}  // namespace lockstep::step
