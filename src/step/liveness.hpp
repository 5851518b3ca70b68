// Where each tensor lives in a rank's memory, and what the peak is by category.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

struct MemoryUse {
    Bytes parameters;  ///< and working copies, master weights and buffers
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

/// When a storage holds something in one step of a rank: closed intervals of positions in issue order, ascending. Long
/// accumulations are folded: passes that repeat the one before are left out.
struct Life {
    struct Interval {
        std::int32_t begin = 0, end = 0;
    };
    std::vector<Interval> intervals;  ///< empty: never touched, or a view
};
bool overlap(const Life& a, const Life& b);

struct Lives {
    std::vector<Life> of;             ///< by tensor
    std::vector<std::int32_t> issue;  ///< op number at each position
};
/// Carried tensors, the loss and the reduced gradients live to the end of the step; carried ones from its start too.
/// What an op outside the compute stream touches lives until the compute stream has waited for that op (or a later one
/// of its stream), and from the start of the step when such an op comes first.
Lives find_lives(const StepGraph& graph, const RankClass& rank_class);

/// The peak alone (offset stays empty, arena_bytes 0): linear in the ops, for predictions.
MemoryPlan measure_memory(const StepGraph& graph, const RankClass& rank_class);
/// The peak, and offsets that are multiples of 64 bytes such that storages whose lives overlap are apart: carried ones
/// first, then the largest first, each at the lowest place that is free.
MemoryPlan plan_memory(const StepGraph& graph, const RankClass& rank_class);

}  // namespace lockstep::step
