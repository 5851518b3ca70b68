// Where each tensor lives in a rank's memory, and what the peak is by category.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

struct MemoryUse {
    Bytes parameters;  ///< and master weights and buffers
    Bytes gradients;   ///< and main gradients and buckets
    Bytes optimizer;
    Bytes activations;  ///< and inputs, at the peak
    Bytes workspace;    ///< executor's own, when known
    Bytes total;
};

struct MemoryPlan {
    std::vector<std::int64_t> offset;  ///< byte offset of each tensor's storage in the arena (views: of their first
                                       ///< element); -1: not used by this class
    std::int64_t arena_bytes = 0;      ///< what a real executor allocates; at least the peak
    MemoryUse peak;                    ///< live bytes at the moment of the peak
    std::int32_t peak_op = -1;         ///< op number at the peak
};

/// Offsets are multiples of 64 bytes. Tensors carried over steps are apart from each other for the whole step; the
/// others share memory when their lives in issue order don't overlap; what an op outside the compute stream touches
/// lives to the end of the step.
MemoryPlan plan_memory(const StepGraph& graph, const RankClass& rank_class);

}  // namespace lockstep::step
