// The ops of attention: on one rank, or on context-parallel ranks by a ring or by all-to-alls.
#pragma once

#include "step/layer_step.hpp"

namespace lockstep::step {

/// Writes the layer's output and saved tensors.
void add_attention_forward(const LayerStep& at);
struct AttentionGradients {
    TensorId qkv;
    TensorId memory;  ///< invalid: the layer has none
};
/// Returns the gradients of the layer's inputs, made by ops in the open block.
AttentionGradients add_attention_backward(const LayerStep& at);

}  // namespace lockstep::step
