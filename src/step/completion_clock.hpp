// What is certainly done when an op of a rank starts, whatever the speed of its streams.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// A vector clock over the streams of one rank (Fidge 1988, Mattern 1989). An op starts after the op before it on its
/// stream, the ops its data depend on, the last HostSync before it, and all that these started after. Nothing else is
/// assumed: not how far the host runs ahead, not how long anything takes.
class CompletionClock {
public:
    explicit CompletionClock(const StepGraph& graph) : width_(graph.streams.size()), last_(width_, -1) {}

    /// Registers the next op in issue order, which depends on the ops at positions `dependencies` (ascending, as
    /// DependencyTracker finds them when positions are its sequences). Positions count from 0. Returns those it must
    /// wait for: at most one of each other stream, without those that are done when others are. Valid until the next
    /// call.
    const std::vector<std::int32_t>& next(const OpInstance& op, const std::vector<std::int64_t>& dependencies);

    /// Position of the last op of a stream that is done when the op registered last starts; -1: none.
    std::int32_t done(StreamId stream) const { return known_[known_.size() - width_ + stream.index()]; }

    /// Forgets all ops, to follow another rank.
    void restart();

private:
    void follow(std::int32_t* row, std::int32_t earlier);

    std::size_t width_ = 0;
    std::vector<std::int32_t> known_;      // positions, by op and stream
    std::vector<std::int32_t> stream_of_;  // by op
    std::vector<std::int32_t> last_;       // position, by stream
    std::int32_t host_sync_ = -1;
    std::vector<std::int32_t> waits_;
};

}  // namespace lockstep::step
