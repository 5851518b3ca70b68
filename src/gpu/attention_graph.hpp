// Attention as graphs that cuDNN knows and fuses, on lockstep's layout without a copy.
//
// In qkv [seq, batch, kv_heads, g + 2, head_dim] and context [seq, batch, kv_heads, g, head_dim] samples and groups of
// heads are one dimension of even stride. To cuDNN each of them is a sample of g heads that share one key and value.
#pragma once

#include "gpu/dnn_graph.hpp"
#include "step/op.hpp"

namespace lockstep::gpu {

struct AttentionForwardGraph {
    DnnGraph graph;
    DnnGraph::Tensor q, k, v, context, log_sum_exp;
};
/// What a fused engine looks for: softmax(scale q k^T) v and log(sum(exp(scale q k^T))).
AttentionForwardGraph make_forward_graph(const step::Attention& op, DType dtype);

struct AttentionBackwardGraph {
    DnnGraph graph;
    DnnGraph::Tensor dcontext, q, k, v, context, log_sum_exp;
    DnnGraph::Tensor dq, dk, dv;
    /// fp32 [batch, heads, seq] and [batch, heads, seq, head_dim], which the engine needs in memory besides its
    /// workspace.
    DnnGraph::Tensor delta, dq_sum;
};
AttentionBackwardGraph make_backward_graph(const step::Attention& op, DType dtype);

}  // namespace lockstep::gpu
