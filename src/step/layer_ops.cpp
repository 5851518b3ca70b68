#include "step/layer_ops.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

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
            .pass = pass,
            .kernel_width = c.kernel_width,
            .padding_width = c.padding_width};
}

Norm norm_of(const Assembly& a, const model::Layer& layer, TensorId x, Pass pass) {
    const auto& n = std::get<model::Norm>(layer.kind);
    Norm op{.kind = n.kind, .features = n.features, .epsilon = n.epsilon, .pass = pass};
    if (n.kind == model::Norm::Kind::batch) {
        op.rows = a.batch();
        op.spatial = layer.input.elements() / n.features;
    } else {
        op.rows = rows_of(a.graph.tensor(x));
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

Dropout dropout_of(const Assembly& a, const model::Layer& layer, TensorId x, Pass pass) {
    return {.count = a.graph.tensor(x).elements(),
            .probability = std::get<model::Dropout>(layer.kind).probability,
            .stream = random_stream(layer.name),
            .pass = pass};
}

Embedding embedding_of(const Assembly& a, TensorId ids, TensorId table, Pass pass) {
    const Shape& rows = a.graph.tensor(table).shape;
    return {.tokens = a.graph.tensor(ids).elements(), .vocab = rows[0], .hidden = rows[1], .pass = pass};
}

FirstToken first_token_of(const Assembly& a, const model::Layer& layer, Pass pass) {
    return {.batch = a.batch(), .seq = layer.input[0], .width = layer.input.back(), .pass = pass};
}

SoftmaxLoss softmax_loss_of(const Assembly& a, TensorId logits, Pass pass) {
    const Tensor& tensor = a.graph.tensor(logits);
    const std::int64_t rows = rows_of(tensor);
    SoftmaxLoss op;
    op.rows = rows;
    op.classes = tensor.shape.back();
    op.gradient_scale = 1.0 / (static_cast<double>(rows) * a.passes());
    op.pass = pass;
    return op;
}

Elementwise elementwise_of(const Assembly& a, const model::Layer& layer, TensorId x, Elementwise::Kind kind) {
    using Kind = Elementwise::Kind;
    const Tensor& input = a.graph.tensor(x);
    const std::int64_t width = input.shape.back();
    Elementwise op;
    op.kind = kind;
    op.count = input.elements();
    switch (kind) {
        case Kind::gated:
        case Kind::gated_backward:
            op.width = width / 2;
            if (kind == Kind::gated) op.count /= 2;
            break;
        case Kind::rotary:
        case Kind::rotary_backward: {
            op.rotary = std::get<model::Rotary>(layer.kind);
            const std::int64_t parts = (op.rotary.heads + 2 * op.rotary.kv_heads) * op.rotary.head_dim / width;
            op.rotary.heads /= parts;
            op.rotary.kv_heads /= parts;
            op.width = width;
            op.batch = a.batch();
            break;
        }
        case Kind::add_positions:
            op.width = width;
            op.batch = a.batch();
            op.positions = std::get<model::PositionEmbedding>(layer.kind).positions;
            break;
        case Kind::add_bias: op.width = width; break;
        case Kind::channel_scale:
        case Kind::channel_scale_backward:
            op.width = layer.input[0];
            op.batch = a.batch();
            break;
        default: break;
    }
    return op;
}

Slice part_of_concatenation(const Assembly& a, const model::Layer& layer, const std::vector<TensorId>& inputs,
                            std::size_t slot, Pass pass) {
    const std::int64_t blocks = std::get<model::Concatenate>(layer.kind).blocks;
    const auto width = [&](TensorId x) {
        const Shape& shape = a.graph.tensor(x).shape;
        return (shape.rank() == 4 ? shape[1] : shape.back()) / blocks;
    };
    const Tensor& x = a.graph.tensor(inputs[slot]);
    Slice op{.kept = width(inputs[slot]), .pass = pass};
    op.rows = x.elements() / op.kept;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (i < slot) op.first += width(inputs[i]);
        op.width += width(inputs[i]);
    }
    return op;
}

Gemm linear_forward(const Assembly& a, TensorId x, TensorId w) {
    const Shape& weight = a.graph.tensor(w).shape;
    return {.m = rows_of(a.graph.tensor(x)), .n = weight[0], .k = weight[1], .b = Gemm::Transpose::yes};
}

Gemm linear_backward_data(const Assembly& a, TensorId dy, TensorId w) {
    const Shape& weight = a.graph.tensor(w).shape;
    return {.m = rows_of(a.graph.tensor(dy)), .n = weight[1], .k = weight[0]};
}

Gemm linear_backward_weights(const Assembly& a, TensorId dy, TensorId x) {
    const Tensor& output = a.graph.tensor(dy);
    const Tensor& input = a.graph.tensor(x);
    return {.m = output.shape.back(), .n = input.shape.back(), .k = rows_of(output), .a = Gemm::Transpose::yes};
}

Gemm grouped_forward(const Assembly& a, TensorId x, TensorId w) {
    const Shape& rows = a.graph.tensor(x).shape;
    const Shape& weight = a.graph.tensor(w).shape;
    return {.batch = rows[0], .m = rows[1], .n = weight[1], .k = weight[2], .b = Gemm::Transpose::yes};
}

Gemm grouped_backward_data(const Assembly& a, TensorId dy, TensorId w) {
    const Shape& rows = a.graph.tensor(dy).shape;
    const Shape& weight = a.graph.tensor(w).shape;
    return {.batch = rows[0], .m = rows[1], .n = weight[2], .k = weight[1]};
}

Gemm grouped_backward_weights(const Assembly& a, TensorId dy, TensorId x) {
    const Shape& output = a.graph.tensor(dy).shape;
    const Shape& input = a.graph.tensor(x).shape;
    return {.batch = output[0], .m = output[2], .n = input[2], .k = output[1], .a = Gemm::Transpose::yes};
}

}  // namespace lockstep::step
