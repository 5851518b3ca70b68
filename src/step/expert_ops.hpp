// The ops that bring tokens to experts and back: routing, dispatch, the all-to-alls of expert parallelism, combination.
#pragma once

#include "step/layer_step.hpp"

namespace lockstep::step {

/// Rows an expert takes of one pass on this rank: what the fullest one can get (see routing.hpp) on any rank, at most
/// the layer's capacity. All ranks and experts take as many, so that a step lasts as long as its fullest expert, and
/// sizes are the same in every pass.
std::int64_t rows_per_expert(const Assembly& a, const model::Dispatch& dispatch, TensorId token_rows);

/// saved: token_rows, row_tokens. Output: the rows of this rank's experts from all ranks that share them.
void add_dispatch_forward(const LayerStep& at);
/// Returns the gradient of the tokens.
TensorId add_dispatch_backward(const LayerStep& at);

/// saved: what all experts made of this rank's tokens.
void add_combine_forward(const LayerStep& at);
struct CombineGradients {
    TensorId rows;    ///< of this rank's experts
    TensorId logits;  ///< of the router
};
/// Between here and the dispatch gradients are those of the mean over the ranks of ep: what experts' weights want, as
/// the all-to-alls bring them the sum over these ranks.
CombineGradients add_combine_backward(const LayerStep& at);

}  // namespace lockstep::step
