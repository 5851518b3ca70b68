// Which earlier ops an op must wait for, from the tensors they read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// Follows one rank's issue order over steps and micro-batches and finds, for each op, the earlier ops whose results it
/// reads (read after write), or whose operands it overwrites (write after read, write after write), on the same
/// elements: views of one storage conflict only where they overlap. Values of Lifetime::micro_batch of different
/// micro-batches share storage.
class DependencyTracker {
public:
    explicit DependencyTracker(const StepGraph& graph);
    /// Registers the next op in issue order under the caller's number `sequence` (rising) and returns the sequences it
    /// depends on, ascending, each once. Ops on the same stream are included only when data connects them.
    const std::vector<std::int64_t>& next(const OpInstance& op, std::int64_t sequence);

private:
    struct Segment {
        std::int64_t writer = -1;
        std::vector<std::int64_t> readers;
    };
    const StepGraph& graph_;
    std::vector<std::vector<std::int32_t>> segments_of_tensor_;
    std::vector<Segment> segments_;
    std::vector<std::int64_t> found_;
};

}  // namespace lockstep::step
