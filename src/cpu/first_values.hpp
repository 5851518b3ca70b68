// What tensors hold before the first step, each element by its index in the global tensor, so that any split of the
// model starts equal.
#pragma once

#include <cstdint>

#include "cpu/kernel.hpp"
#include "step/graph.hpp"

namespace lockstep::cpu {

/// Writes one copy (slot) of a tensor that has an initial value of its own. Throws LogicError for element types that
/// hold no such values.
void write_first_values(const step::Initial& initial, std::uint64_t seed, std::int32_t slot, const Operand& target);

/// Writes a rank's part of a flat tensor: where a view of it that is a parameter covers an element, that parameter's
/// first value; elsewhere (padding) 0.
void write_part_of_views(const step::StepGraph& graph, int rank, step::TensorId part, const Operand& target);

}  // namespace lockstep::cpu
