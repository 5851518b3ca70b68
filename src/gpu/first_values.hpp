// What tensors hold before the first step, written on the device.
#pragma once

#include "gpu/kernel.hpp"
#include "step/graph.hpp"

namespace lockstep::gpu {

/// Copy `slot` of a tensor: values keyed by global index, as step::Initial says.
void write_first_values(const step::Initial& initial, std::uint64_t seed, std::int32_t slot, const Operand& target,
                        cudaStream_t stream);
/// A part of a flat tensor (Tensor::part_of): the first values of the parameters that are views of it, 0 elsewhere.
void write_part_of_views(const step::StepGraph& graph, int rank, step::TensorId part, const Operand& target,
                         cudaStream_t stream);

}  // namespace lockstep::gpu
