// Sizes of a layer's ops for one micro-batch on this rank.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// `x`: the layer's input, `y`: its output; `w`: its weight, as this rank holds them.
Convolution convolution_of(const Assembly& a, const model::Layer& layer, Pass pass);
Norm norm_of(const Assembly& a, const model::Layer& layer, TensorId x, Pass pass);
/// Throws InputError for a global pool of an image that is not square.
Pool pool_of(const Assembly& a, const model::Layer& layer, Pass pass);
Dropout dropout_of(const Assembly& a, const model::Layer& layer, TensorId x, Pass pass);
Embedding embedding_of(const Assembly& a, TensorId ids, TensorId table, Pass pass);
FirstToken first_token_of(const Assembly& a, const model::Layer& layer, Pass pass);
SoftmaxLoss softmax_loss_of(const Assembly& a, TensorId logits, Pass pass);
/// For kinds that keep or halve the width of `x`; rotary by the share of the heads that its width holds.
Elementwise elementwise_of(const Assembly& a, const model::Layer& layer, TensorId x, Elementwise::Kind kind);

/// Moves the features (or channels) of inputs[slot] of a Concatenate to their place in its output (backward_data) or
/// out of it (forward).
Slice part_of_concatenation(const Assembly& a, const model::Layer& layer, const std::vector<TensorId>& inputs,
                            std::size_t slot, Pass pass);

/// y = x W^T (+ b): rows are everything but the last extent.
Gemm linear_forward(const Assembly& a, TensorId x, TensorId w);
/// dx = dy W
Gemm linear_backward_data(const Assembly& a, TensorId dy, TensorId w);
/// dW = dy^T x
Gemm linear_backward_weights(const Assembly& a, TensorId dy, TensorId x);

/// The same of experts: x [experts, rows, in], w [experts, out, in].
Gemm grouped_forward(const Assembly& a, TensorId x, TensorId w);
Gemm grouped_backward_data(const Assembly& a, TensorId dy, TensorId w);
Gemm grouped_backward_weights(const Assembly& a, TensorId dy, TensorId x);

}  // namespace lockstep::step
