// The ops of attention: on one rank, or on context-parallel ranks by a ring or by all-to-alls.
#pragma once

#include "step/layer_step.hpp"

namespace lockstep::step {

/// Writes the layer's output and saved tensors.
void add_attention_forward(const LayerStep& at);
/// Returns the gradient of the layer's input, made by ops in the open block.
TensorId add_attention_backward(const LayerStep& at);

}  // namespace lockstep::step
