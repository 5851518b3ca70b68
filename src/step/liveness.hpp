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
    /// Byte offset of each tensor's storage in the arena; of a view that of its first element (of a RingPart: of part
    /// 0, to which a rank adds its part). Copies lie slot_stride() apart. -1: not used by this class.
    std::vector<std::int64_t> offset;
    std::int64_t arena_bytes = 0;  ///< what a real executor allocates; at least the peak
    MemoryUse peak;                ///< live bytes at the moment of the peak
    std::int32_t peak_op = -1;     ///< op number at the peak
};

/// The peak alone (offset stays empty, arena_bytes 0): linear in the ops, for predictions. Only copies of a tensor that
/// hold something count, at each moment (LifeFinder).
MemoryPlan measure_memory(const StepGraph& graph, const RankClass& rank_class);
/// Of all classes, in their order; cheaper than one by one.
std::vector<MemoryPlan> measure_memory(const StepGraph& graph);

/// The peak, and offsets that are multiples of 64 bytes such that copies of storages whose lives overlap are apart:
/// carried ones first, then the largest (and longest lived) first, each at the lowest place that is free. The copies of
/// a tensor lie side by side, but others may lie where a copy holds nothing. Quadratic in the storages: for graphs that
/// are executed.
MemoryPlan plan_memory(const StepGraph& graph, const RankClass& rank_class);

}  // namespace lockstep::step
