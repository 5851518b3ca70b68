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
    /// Byte offset in the arena of each copy of a tensor, where it is when a step ends; of a view that of its first
    /// element (of a RingPart: of part 0, to which a rank adds its part). -1, or no copies: not used by this class.
    std::vector<std::vector<std::int64_t>> offset;
    /// An op finds a copy, and all views of it, that many bytes behind its offset.
    struct Elsewhere {
        std::int32_t op = 0;  ///< number
        TensorId storage;
        std::int32_t micro_batch = -1;  ///< of the operand; -1: in all
        std::int64_t distance = 0;      ///< negative: before it
    };
    std::vector<Elsewhere> elsewhere;  ///< by op, storage and micro-batch
    std::int64_t arena_bytes = 0;      ///< what a real executor allocates; at least the peak
    MemoryUse peak;                    ///< live bytes at the moment of the peak
    std::int32_t peak_op = -1;         ///< op number at the peak

    bool holds(TensorId tensor) const { return !offset[tensor.index()].empty(); }
    /// 0 where an op finds a copy at its offset.
    std::int64_t distance(std::int32_t op, TensorId storage, std::int32_t micro_batch) const;
    /// True when the op finds a storage elsewhere in some micro-batches.
    bool moves_with_micro_batch(std::int32_t op) const;
};

/// The peak alone (offset stays empty, arena_bytes 0): linear in the ops, for predictions. Only copies of a tensor that
/// hold something count, at each moment (LifeFinder).
MemoryPlan measure_memory(const StepGraph& graph, const RankClass& rank_class);
/// Of all classes, in their order; cheaper than one by one.
std::vector<MemoryPlan> measure_memory(const StepGraph& graph);

/// The peak, and offsets that are multiples of 64 bytes such that what lives at the same time is apart: carried
/// storages first, behind them what comes and goes, packed (arena_packing.hpp) into little more than the peak. Where
/// that fails as long as a copy has one place, its lives get places of their own (stays.hpp): tensors that are written
/// anew several times in a step, each time beside others, can make any fixed places too large (parameters that ZeRO 3
/// gathers twice). Quadratic in the storages: for graphs that are executed.
MemoryPlan plan_memory(const StepGraph& graph, const RankClass& rank_class);

}  // namespace lockstep::step
