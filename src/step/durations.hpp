// How long ops take, whatever the source: a cost model, a record, or a world without communication cost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

/// A collective or message alone on its links: a fixed delay, then a transfer whose rate may be shared.
struct CommunicationTime {
    Seconds latency;
    Seconds transfer;
    Bytes wire;  ///< what each of its ranks sends meanwhile; transfers that share a link get equal rates of these bytes
};

/// A link carries `share` bytes for each byte that a rank of the transfer sends.
struct LinkLoad {
    std::int32_t link = 0;  ///< index into Durations::links()
    double share = 1;
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

    /// Capacities (one direction) of the links that transfers may share; none when nothing is shared.
    virtual std::vector<Bandwidth> links() const { return {}; }
    /// What the communication of `rank` loads, each link once, ascending: of a collective the same for all its members;
    /// of messages half of what each end sends and receives, since both ends carry out the transfer. Alone no link is
    /// overloaded.
    virtual std::vector<LinkLoad> loads(const StepGraph&, int /*rank*/, const OpInstance&) const { return {}; }
    /// Ranks of one class that are given equal lists have equal compute and communication times in every op.
    virtual std::vector<std::int64_t> likeness(const StepGraph&, int /*rank*/) const { return {}; }
};

}  // namespace lockstep::step
