#include "step/forward_ops.hpp"

#include "step/layer_ops.hpp"

namespace lockstep::step {

namespace {

TensorId pack(Assembly& a, const model::Layer& layer, Pass pass) {
    const TensorId weight = a.parameters[layer.parameters[0].index()].working;
    Tensor packed = a.graph.tensor(weight);
    packed.name = layer.name + (pass == Pass::forward ? ".packed_forward" : ".packed_backward");
    packed.role = Role::workspace;
    packed.lifetime = Lifetime::step;
    packed.layout = Layout::opaque;
    packed.initial = {};
    const Reorder reorder{packed.elements(), convolution_of(a, layer, pass)};
    const TensorId id = a.graph.add(std::move(packed));
    a.graph.add_op(layer.name + (pass == Pass::forward ? ".reorder_forward" : ".reorder_backward"), Compute{reorder},
                   {weight}, {{id, Access::overwrite}}, model::LayerId{});
    return id;
}

/// Appends the forward ops of one layer.
struct Forward {
    Assembly& a;
    const model::Layer& layer;
    LayerTensors& mine;
    model::LayerId id;

    TensorId working(std::size_t slot) const { return a.parameters[layer.parameters[slot].index()].working; }
    std::vector<TensorId> with_parameters(std::vector<TensorId> in, std::size_t first = 0) const {
        for (std::size_t i = first; i < layer.parameters.size(); ++i) in.push_back(working(i));
        return in;
    }
    TensorId save(const char* what, const Shape& shape, DType dtype, Role role = Role::activation) const {
        Tensor tensor;
        tensor.name = layer.name + "." + what;
        tensor.shape = shape;
        tensor.dtype = dtype;
        tensor.role = role;
        mine.saved.push_back(a.graph.add(std::move(tensor)));
        return mine.saved.back();
    }
    void emit(Compute op, std::vector<TensorId> in) const {
        mine.output = a.add_activation(layer.name, layer.output, a.activation());
        std::vector<Write> out{{mine.output, Access::overwrite}};
        for (const TensorId saved : mine.saved) out.push_back({saved, Access::overwrite});
        a.graph.add_op(layer.name + ".forward", std::move(op), std::move(in), std::move(out), id);
    }
    void emit_elementwise(Elementwise::Kind kind, std::vector<TensorId> in) const {
        emit(elementwise_of(a, layer, kind), std::move(in));
    }

    void operator()(const model::Convolution&) const {
        const TensorId weight = a.is_packed() ? mine.packed_weight : working(0);
        emit(convolution_of(a, layer, Pass::forward), with_parameters({mine.input, weight}, 1));
    }
    void operator()(const model::Linear&) const { emit(linear_forward(a, layer), with_parameters({mine.input})); }
    void operator()(const model::Norm& n) const {
        const Norm op = norm_of(a, layer, Pass::forward);
        const Shape statistics{n.kind == model::Norm::Kind::batch ? op.features : op.rows};
        if (n.kind != model::Norm::Kind::rms) save("mean", statistics, DType::fp32);
        save("inverse_deviation", statistics, DType::fp32);
        emit(op, with_parameters({mine.input}));
        if (n.kind == model::Norm::Kind::batch) add_running_statistics(n.features);
    }
    void add_running_statistics(std::int64_t features) const {
        std::vector<Write>& out = a.graph.graph().blocks[a.graph.open_block().index()].ops.back().out;
        for (const bool is_variance : {false, true}) {
            Tensor tensor;
            tensor.name = layer.name + (is_variance ? ".running_variance" : ".running_mean");
            tensor.shape = {features};
            tensor.role = Role::buffer;
            tensor.lifetime = Lifetime::carried;
            tensor.initial.kind = is_variance ? Initial::Kind::one : Initial::Kind::zero;
            out.push_back({a.graph.add(std::move(tensor)), Access::update});
        }
    }
    void operator()(const model::Activation& activation) const {
        using Kind = model::Activation::Kind;
        switch (activation.kind) {
            case Kind::relu: return emit_elementwise(Elementwise::Kind::relu, {mine.input});
            case Kind::gelu: return emit_elementwise(Elementwise::Kind::gelu, {mine.input});
            case Kind::silu: return emit_elementwise(Elementwise::Kind::silu, {mine.input});
            case Kind::tanh: return emit_elementwise(Elementwise::Kind::tanh, {mine.input});
        }
    }
    void operator()(const model::GatedActivation&) const { emit_elementwise(Elementwise::Kind::gated, {mine.input}); }
    void operator()(const model::Pool& pool) const {
        if (pool.kind == model::Pool::Kind::max)
            mine.saved.push_back(a.add_activation(layer.name + ".indices", layer.output, DType::int32));
        emit(pool_of(a, layer, Pass::forward), {mine.input});
    }
    void operator()(const model::Add&) const {
        emit_elementwise(Elementwise::Kind::add, {mine.input, a.source(layer, 1)});
    }
    void operator()(const model::Dropout& dropout) const {
        if (dropout.probability == 0) {
            mine.output = mine.input;
            return;
        }
        mine.saved.push_back(a.add_activation(layer.name + ".mask", layer.output, DType::uint8));
        emit(dropout_of(a, layer, Pass::forward), {mine.input});
    }
    void operator()(const model::Embedding&) const {
        emit(embedding_of(a, layer, Pass::forward), with_parameters({mine.input}));
    }
    void operator()(const model::PositionEmbedding& p) const {
        TensorId table = working(0);
        if (p.positions != layer.output[0])
            table = a.graph.add_view(layer.name + ".used_rows", table, 0, layer.output, Layout::row_major);
        emit_elementwise(Elementwise::Kind::add_rows, {mine.input, table});
    }
    void operator()(const model::Rotary&) const { emit_elementwise(Elementwise::Kind::rotary, {mine.input}); }
    void operator()(const model::Attention&) const {
        const Attention op = attention_of(a, layer, Pass::forward);
        if (op.algorithm == plan::AttentionAlgorithm::flash)
            mine.saved.push_back(a.add_activation(layer.name + ".log_sum_exp", {op.heads, op.seq}, DType::fp32));
        else
            mine.saved.push_back(
                a.add_activation(layer.name + ".probabilities", {op.heads, op.seq, op.seq}, a.activation()));
        emit(op, {mine.input});
    }
    void operator()(const model::Flatten&) const {
        Shape shape{a.batch(), layer.output.elements()};
        mine.output = a.graph.add_view(layer.name, mine.input, 0, std::move(shape), Layout::row_major);
    }
    void operator()(const model::FirstToken&) const { emit(first_token_of(a, layer, Pass::forward), {mine.input}); }
    void operator()(const model::SoftmaxLoss&) const {
        const SoftmaxLoss op = softmax_loss_of(a, layer, Pass::forward);
        Tensor loss;
        loss.name = "loss";
        loss.shape = {1};
        loss.role = Role::scalar;
        loss.lifetime = Lifetime::carried;
        mine.output = a.loss = a.graph.add(std::move(loss));
        save("log_sum_exp", {op.rows}, DType::fp32);
        a.graph.add_op(layer.name + ".forward", Compute{op}, {mine.input, a.labels},
                       {{a.loss, Access::accumulate_micro_batches}, {mine.saved[0], Access::overwrite}}, id);
    }
};

}  // namespace

void pack_weights(Assembly& a) {
    if (!a.is_packed()) return;
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
        const model::Layer& layer = a.model().layers[i];
        if (!std::holds_alternative<model::Convolution>(layer.kind)) continue;
        a.layers[i].packed_weight = pack(a, layer, Pass::forward);
        const model::LayerId from = layer.inputs[0];
        if (from.is_valid() && a.layers[from.index()].needs_gradient)
            a.layers[i].packed_weight_backward = pack(a, layer, Pass::backward_data);
    }
}

void add_forward(Assembly& a) {
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
        const model::Layer& layer = a.model().layers[i];
        a.layers[i].input = a.source(layer, 0);
        std::visit(Forward{a, layer, a.layers[i], model::LayerId{static_cast<std::int32_t>(i)}}, layer.kind);
    }
}

}  // namespace lockstep::step
