#include "gpu/attention_graph.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "gpu/dnn_descriptors.hpp"

namespace lockstep::gpu {
namespace {

using Extents = DnnGraph::Extents;
using Tensor = DnnGraph::Tensor;

/// Extents and strides of an attention's tensors, as cuDNN sees them: [samples and groups, heads, seq, head_dim].
struct Layout {
    std::int64_t samples, heads, seq, width;  ///< width: of a head
    std::int64_t qkv_row, context_row;        ///< elements from one position to the next
    DType dtype;

    Layout(const step::Attention& op, DType type)
        : samples(op.batch * op.kv_heads),
          heads(op.heads / op.kv_heads),
          seq(op.seq),
          width(op.head_dim),
          qkv_row(samples * (heads + 2) * width),
          context_row(samples * heads * width),
          dtype(type) {}

    Extents scores() const { return {samples, heads, seq, seq}; }
    Extents rows() const { return {samples, heads, seq, 1}; }
    Tensor query(DnnGraph& g) const {
        return g.memory(dtype, {samples, heads, seq, width}, {(heads + 2) * width, width, qkv_row, 1});
    }
    /// Of a key or value.
    Tensor key(DnnGraph& g) const {
        return g.memory(dtype, {samples, 1, seq, width}, {(heads + 2) * width, width, qkv_row, 1});
    }
    Tensor key_transposed(DnnGraph& g) const {
        return g.memory(dtype, {samples, 1, width, seq}, {(heads + 2) * width, width, 1, qkv_row});
    }
    Tensor context(DnnGraph& g) const {
        return g.memory(dtype, {samples, heads, seq, width}, {heads * width, width, context_row, 1});
    }
    Tensor row_values(DnnGraph& g) const { return g.memory(DType::fp32, rows(), {heads * seq, seq, 1, 1}); }
    cudnnDataType_t type() const { return dnn_type(dtype); }
};

/// What masked scores become: releases before 9.10 want a number.
float masked() {
    return cudnnGetVersion() < 91000 ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
}
float scale_of(const step::Attention& op) { return 1.0F / std::sqrt(static_cast<float>(op.head_dim)); }

/// x with its last two dimensions exchanged, as a factor of a product.
Tensor transposed(DnnGraph& g, const Tensor& x, cudnnDataType_t type) {
    const auto turn = [](Extents e) {
        std::swap(e[2], e[3]);
        return e;
    };
    const Tensor y = g.inside(turn(x.extents), turn(x.strides), type);
    g.reshape(x, y);
    return y;
}

}  // namespace

AttentionForwardGraph make_forward_graph(const step::Attention& op, DType dtype) {
    AttentionForwardGraph a;
    const Layout layout(op, dtype);
    DnnGraph& g = a.graph;
    a.q = layout.query(g);
    a.k = layout.key_transposed(g);
    a.v = layout.key(g);
    a.context = layout.context(g);
    a.log_sum_exp = layout.row_values(g);

    const Tensor products = g.inside(layout.scores());
    g.matmul(a.q, a.k, products);
    Tensor scores = g.apply(CUDNN_POINTWISE_MUL, products, g.number(scale_of(op)));
    if (op.causal) scores = g.lower_triangle(scores, g.number(masked()));

    const Tensor largest = g.inside(layout.rows()), sum = g.inside(layout.rows());
    g.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    const Tensor exponentials = g.apply(CUDNN_POINTWISE_EXP, g.apply(CUDNN_POINTWISE_SUB, scores, largest));
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    g.pointwise(CUDNN_POINTWISE_ADD, largest, g.apply(CUDNN_POINTWISE_LOG, sum), a.log_sum_exp);
    const Tensor probabilities = g.inside(layout.scores(), layout.type());
    g.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
    g.matmul(probabilities, a.v, a.context);
    return a;
}

/// P = exp(scale Q K^T - lse);  dV = P^T dO;  dP = dO V^T;  dS = P (dP - rowsum(dO O)) scale;  dK = dS^T Q;  dQ = dS K
AttentionBackwardGraph make_backward_graph(const step::Attention& op, DType dtype) {
    AttentionBackwardGraph a;
    const Layout layout(op, dtype);
    DnnGraph& g = a.graph;
    a.dcontext = layout.context(g);
    a.q = layout.query(g);
    a.k = layout.key_transposed(g);
    a.v = layout.key_transposed(g);
    a.context = layout.context(g);
    a.log_sum_exp = layout.row_values(g);
    a.dq = layout.query(g);
    a.dk = layout.key(g);
    a.dv = layout.key(g);
    a.delta = layout.row_values(g);
    const Extents per_query{layout.samples, layout.heads, layout.seq, layout.width};
    a.dq_sum = g.memory(DType::fp32, per_query,
                        {layout.heads * layout.seq * layout.width, layout.seq * layout.width, layout.width, 1});

    const Tensor sums = g.inside(layout.rows());
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.apply(CUDNN_POINTWISE_MUL, a.dcontext, a.context), sums);
    g.pointwise(CUDNN_POINTWISE_MUL, sums, g.number(1), a.delta);  // where cuDNN undoes a dropout's factor

    const Tensor scale = g.number(scale_of(op));
    const Tensor products = g.inside(layout.scores());
    g.matmul(a.q, a.k, products);
    Tensor exponents = g.apply(CUDNN_POINTWISE_SUB, g.apply(CUDNN_POINTWISE_MUL, products, scale), a.log_sum_exp);
    if (op.causal) exponents = g.lower_triangle(exponents, g.number(masked()));
    const Tensor probabilities = g.apply(CUDNN_POINTWISE_EXP, exponents);

    /// to the keys' side: dx = x^T y, summed over the heads that share a key
    const auto to_keys = [&](const Tensor& x, const Tensor& y, const Tensor& dx) {
        const Tensor turned = transposed(g, x, layout.type());
        if (layout.heads == 1) return g.matmul(turned, y, dx);
        const Tensor by_head = g.inside(per_query, layout.type());
        g.matmul(turned, y, by_head);
        g.reduce(CUDNN_REDUCE_TENSOR_ADD, by_head, dx);
    };
    to_keys(probabilities, a.dcontext, a.dv);

    const Tensor dprobabilities = g.inside(layout.scores());
    g.matmul(a.dcontext, a.v, dprobabilities);
    const Tensor centred = g.apply(CUDNN_POINTWISE_SUB, dprobabilities, a.delta);
    const Tensor dscores = g.apply(CUDNN_POINTWISE_MUL, g.apply(CUDNN_POINTWISE_MUL, centred, probabilities), scale);
    to_keys(dscores, a.q, a.dk);
    g.matmul(dscores, transposed(g, a.k, layout.type()), a.dq_sum);
    g.pointwise(CUDNN_POINTWISE_IDENTITY, a.dq_sum, a.dq);
    return a;
}

}  // namespace lockstep::gpu
