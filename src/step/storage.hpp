// Where a rank's tensors lie in the arena that a memory plan lays out, for executors that really allocate one.
#pragma once

#include <cstdint>

#include "step/graph.hpp"
#include "step/liveness.hpp"

namespace lockstep::step {

/// Byte offset of the tensor's copy for this micro-batch, where it is when a step ends; of a ring view, of the part
/// that this rank has. Throws LogicError for a tensor without memory in the plan.
std::int64_t byte_offset(const StepGraph& graph, const MemoryPlan& plan, int rank, TensorId id,
                         std::int32_t micro_batch);
/// Where an op finds its operand.
std::int64_t byte_offset(const StepGraph& graph, const MemoryPlan& plan, int rank, const OpInstance& op, TensorId id,
                         std::int32_t micro_batch);
/// The tensor whose storage it is: itself, or the one it is a view of.
TensorId storage_id(const StepGraph& graph, TensorId id);
const Tensor& storage_of(const StepGraph& graph, TensorId id);
/// True when an operand of the op has several copies.
bool uses_copies(const StepGraph& graph, const Op& op);
/// True when the op's operands are at other addresses in other micro-batches.
bool moves_with_micro_batch(const StepGraph& graph, const MemoryPlan& plan, const OpInstance& op);

}  // namespace lockstep::step
