// Sizes of a layer's ops for one micro-batch.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

Convolution convolution_of(const Assembly& a, const model::Layer& layer, Pass pass);
Attention attention_of(const Assembly& a, const model::Layer& layer, Pass pass);
Norm norm_of(const Assembly& a, const model::Layer& layer, Pass pass);
/// Throws InputError for a global pool of an image that is not square.
Pool pool_of(const Assembly& a, const model::Layer& layer, Pass pass);
Dropout dropout_of(const Assembly& a, const model::Layer& layer, Pass pass);
Embedding embedding_of(const Assembly& a, const model::Layer& layer, Pass pass);
FirstToken first_token_of(const Assembly& a, const model::Layer& layer, Pass pass);
SoftmaxLoss softmax_loss_of(const Assembly& a, const model::Layer& layer, Pass pass);
Elementwise elementwise_of(const Assembly& a, const model::Layer& layer, Elementwise::Kind kind);

/// y = x W^T (+ b): rows are everything but the last extent.
Gemm linear_forward(const Assembly& a, const model::Layer& layer);
/// dx = dy W
Gemm linear_backward_data(const Assembly& a, const model::Layer& layer);
/// dW = dy^T x
Gemm linear_backward_weights(const Assembly& a, const model::Layer& layer);

}  // namespace lockstep::step
