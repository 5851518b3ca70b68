#include "step/layer_ops.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

namespace {

/// Rows of [micro-batch, ..., width].
std::int64_t rows_of(const Assembly& a, const Shape& per_sample) {
    return a.batch() * (per_sample.elements() / per_sample.back());
}

}  // namespace

Convolution convolution_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    const auto& c = std::get<model::Convolution>(layer.kind);
    return {.n = a.batch(),
            .in_channels = c.in_channels,
            .height = layer.input[1],
            .width = layer.input[2],
            .out_channels = c.out_channels,
            .kernel = c.kernel,
            .stride = c.stride,
            .padding = c.padding,
            .groups = c.groups,
            .pass = pass};
}

Attention attention_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    const auto& t = std::get<model::Attention>(layer.kind);
    return {.batch = a.batch(),
            .seq = layer.input[0],
            .heads = t.heads,
            .kv_heads = t.kv_heads,
            .head_dim = t.head_dim,
            .causal = t.causal,
            .dropout = t.dropout,
            .dropout_stream = random_stream(layer.name),
            .algorithm = a.input.framework.attention,
            .pass = pass};
}

Norm norm_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    const auto& n = std::get<model::Norm>(layer.kind);
    Norm op{.kind = n.kind, .features = n.features, .epsilon = n.epsilon, .pass = pass};
    if (n.kind == model::Norm::Kind::batch) {
        op.rows = a.batch();
        op.spatial = layer.input.elements() / n.features;
    } else {
        op.rows = rows_of(a, layer.input);
    }
    return op;
}

Pool pool_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    const auto& p = std::get<model::Pool>(layer.kind);
    Pool op{.kind = p.kind,
            .n = a.batch(),
            .channels = layer.input[0],
            .height = layer.input[1],
            .width = layer.input[2],
            .kernel = p.kernel,
            .stride = p.stride,
            .padding = p.padding,
            .pass = pass};
    if (p.kernel != 0) return op;
    if (op.height != op.width)
        throw InputError(
            fmt::format("{}: a global pool of {} x {} can't be run (windows are square); pool it by kernels",
                        layer.name, op.height, op.width));
    op.kernel = op.stride = op.height;
    op.padding = 0;
    return op;
}

Dropout dropout_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    return {.count = a.batch() * layer.output.elements(),
            .probability = std::get<model::Dropout>(layer.kind).probability,
            .stream = random_stream(layer.name),
            .pass = pass};
}

Embedding embedding_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    const auto& e = std::get<model::Embedding>(layer.kind);
    return {.tokens = a.batch() * layer.input.elements(), .vocab = e.vocab, .hidden = e.hidden, .pass = pass};
}

FirstToken first_token_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    return {.batch = a.batch(), .seq = layer.input[0], .width = layer.input.back(), .pass = pass};
}

SoftmaxLoss softmax_loss_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    const std::int64_t classes = std::get<model::SoftmaxLoss>(layer.kind).classes;
    const std::int64_t rows = rows_of(a, layer.input);
    return {.rows = rows,
            .classes = classes,
            .gradient_scale = 1.0 / (static_cast<double>(rows) * a.passes()),
            .pass = pass};
}

Elementwise elementwise_of(const Assembly& a, const model::Layer& layer, Elementwise::Kind kind) {
    using Kind = Elementwise::Kind;
    Elementwise op;
    op.kind = kind;
    op.count = a.batch() * layer.output.elements();
    if (kind == Kind::gated || kind == Kind::gated_backward) op.width = layer.output.back();
    if (kind == Kind::gated_backward) op.count = a.batch() * layer.input.elements();
    if (kind == Kind::rotary || kind == Kind::rotary_backward) {
        op.rotary = std::get<model::Rotary>(layer.kind);
        op.width = layer.output.back();
        op.seq = layer.output[0];
    }
    if (kind == Kind::add_rows) {
        op.width = layer.output.back();
        op.seq = layer.output[0];
    }
    return op;
}

Gemm linear_forward(const Assembly& a, const model::Layer& layer) {
    const auto& l = std::get<model::Linear>(layer.kind);
    return {.m = rows_of(a, layer.input), .n = l.out_features, .k = l.in_features, .b = Gemm::Transpose::yes};
}

Gemm linear_backward_data(const Assembly& a, const model::Layer& layer) {
    const auto& l = std::get<model::Linear>(layer.kind);
    return {.m = rows_of(a, layer.input), .n = l.in_features, .k = l.out_features};
}

Gemm linear_backward_weights(const Assembly& a, const model::Layer& layer) {
    const auto& l = std::get<model::Linear>(layer.kind);
    return {.m = l.out_features, .n = l.in_features, .k = rows_of(a, layer.input), .a = Gemm::Transpose::yes};
}

}  // namespace lockstep::step
