// Products of sequence-parallel layers in pieces, so that a piece is computed while the next is on its way around the
// ring of tp ranks (decomposition of Wang et al. 2023, as PyTorch's asynchronous tensor parallelism).
#pragma once

#include "step/layer_step.hpp"

namespace lockstep::step {

/// True for a linear layer with a gather before it (columns) or a scatter behind it (rows), when the plan asks for it.
bool is_ring_product(const LayerStep& at);

/// y = x W^T (+ b) of a column-split layer: each rank's part of x goes round, each piece fills its rows of y.
void add_gathered_product(const LayerStep& at, const std::vector<TensorId>& bias);
/// The row-split layer's sums, this rank's part: each piece is added to what comes round and sent on.
TensorId add_scattered_product(const LayerStep& at);

/// Gradients of the layer's input (invalid when not `needs_input_gradient`) and, in pieces, of its weight. `dy`: as the
/// layer's output is spread. `contribution`: how the first piece of the weight's gradient is written; empty: frozen.
TensorId add_ring_backward(const LayerStep& at, bool needs_input_gradient, std::optional<Write> contribution);

}  // namespace lockstep::step
