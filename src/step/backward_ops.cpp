#include "step/backward_ops.hpp"

#include "step/layer_ops.hpp"
#include "step/parameter_gradients.hpp"

namespace lockstep::step {

namespace {

/// Appends the backward ops of one layer whose output gradient is complete.
struct Backward {
    Assembly& a;
    const model::Layer& layer;
    LayerTensors& mine;
    model::LayerId id;

    TensorId dy() const { return mine.gradient; }
    TensorId working(std::size_t slot) const { return a.parameters[layer.parameters[slot].index()].working; }
    bool trains(std::size_t slot) const { return has_gradient(a, layer, slot); }
    bool input_needs_gradient(std::size_t slot = 0) const {
        const model::LayerId from = layer.inputs[slot];
        return from.is_valid() && a.layers[from.index()].needs_gradient;
    }

    void emit(const char* what, Compute op, std::vector<TensorId> in, std::vector<Write> out) const {
        a.graph.add_op(layer.name + "." + what, std::move(op), std::move(in), std::move(out), id);
    }
    TensorId new_input_gradient() const {
        return a.add_activation(layer.name + ".input_gradient", layer.input, a.activation());
    }
    /// Hands a gradient to the layer in an input slot; a second one is added to what is there.
    void give(std::size_t slot, TensorId gradient) const {
        if (!input_needs_gradient(slot)) return;
        const model::LayerId from = layer.inputs[slot];
        TensorId& sum = a.layers[from.index()].gradient;
        if (!sum.is_valid()) {
            sum = gradient;
            return;
        }
        const model::Layer& source = a.model().layer(from);
        const TensorId total = a.add_activation(layer.name + ".gradient_sum", source.output, a.activation());
        Elementwise add;
        add.count = a.graph.tensor(total).elements();
        emit("add_gradient", add, {sum, gradient}, {{total, Access::overwrite}});
        sum = total;
    }
    void emit_data(Compute op, std::vector<TensorId> in) const {
        if (!input_needs_gradient()) return;
        const TensorId dx = new_input_gradient();
        emit("backward_data", std::move(op), std::move(in), {{dx, Access::overwrite}});
        give(0, dx);
    }
    void emit_elementwise(Elementwise::Kind kind, std::vector<TensorId> in) const {
        emit_data(elementwise_of(a, layer, kind), std::move(in));
    }
    Write contribution(std::size_t slot) const { return next_contribution(a, layer.parameters[slot]); }
    void done(std::size_t slot) const { contribution_done(a, layer.parameters[slot]); }

    /// dw in the kernel's own order, and the reorder that makes it a gradient.
    void emit_packed_weights(const Convolution& op, std::vector<Write> bias) const {
        Tensor packed = a.graph.tensor(working(0));
        packed.name = layer.name + ".packed_gradient";
        packed.role = Role::workspace;
        packed.lifetime = Lifetime::micro_batch;
        packed.layout = Layout::opaque;
        packed.initial = {};
        const Reorder reorder{packed.elements(), op};
        const TensorId dw = a.graph.add(std::move(packed));
        std::vector<Write> out{{dw, Access::overwrite}};
        out.insert(out.end(), bias.begin(), bias.end());
        emit("backward_weights", op, {dy(), mine.input}, std::move(out));
        emit("reorder_gradient", reorder, {dw}, {contribution(0)});
    }
    void operator()(const model::Convolution&) const {
        emit_data(convolution_of(a, layer, Pass::backward_data),
                  {dy(), a.is_packed() ? mine.packed_weight_backward : working(0)});
        if (!trains(0)) return;
        const Convolution op = convolution_of(a, layer, Pass::backward_weights);
        std::vector<Write> bias;
        if (trains(1)) bias.push_back(contribution(1));
        if (a.is_packed()) {
            emit_packed_weights(op, bias);
        } else {
            std::vector<Write> out{contribution(0)};
            out.insert(out.end(), bias.begin(), bias.end());
            emit("backward_weights", op, {dy(), mine.input}, std::move(out));
        }
        if (trains(1)) done(1);
        done(0);
    }
    void operator()(const model::Linear&) const {
        emit_data(linear_backward_data(a, layer), {dy(), working(0)});
        const Gemm op = linear_backward_weights(a, layer);
        if (trains(1)) {
            emit("backward_bias", ColumnSum{op.k, op.m}, {dy()}, {contribution(1)});
            done(1);
        }
        if (trains(0)) {
            emit("backward_weights", op, {dy(), mine.input}, {contribution(0)});
            done(0);
        }
    }
    /// A frozen parameter's gradient comes out of the kernel all the same.
    Write contribution_or_scratch(std::size_t slot) const {
        if (trains(slot)) return contribution(slot);
        Tensor scratch = a.graph.tensor(working(slot));
        scratch.name = a.parameter(layer.parameters[slot]).name + ".unused_gradient";
        scratch.role = Role::workspace;
        scratch.lifetime = Lifetime::micro_batch;
        scratch.initial = {};
        return {a.graph.add(std::move(scratch)), Access::overwrite};
    }
    void operator()(const model::Norm&) const {
        const TensorId dx = new_input_gradient();
        std::vector<TensorId> in{dy(), mine.input, working(0)};
        in.insert(in.end(), mine.saved.begin(), mine.saved.end());
        std::vector<Write> out{{dx, Access::overwrite}};
        for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot) out.push_back(contribution_or_scratch(slot));
        emit("backward", norm_of(a, layer, Pass::backward_data), std::move(in), std::move(out));
        give(0, dx);
        for (std::size_t slot = layer.parameters.size(); slot-- > 0;)
            if (trains(slot)) done(slot);
    }
    void operator()(const model::Activation& activation) const {
        using Kind = model::Activation::Kind;
        switch (activation.kind) {
            case Kind::relu: return emit_elementwise(Elementwise::Kind::relu_backward, {dy(), mine.output});
            case Kind::gelu: return emit_elementwise(Elementwise::Kind::gelu_backward, {dy(), mine.input});
            case Kind::silu: return emit_elementwise(Elementwise::Kind::silu_backward, {dy(), mine.input});
            case Kind::tanh: return emit_elementwise(Elementwise::Kind::tanh_backward, {dy(), mine.output});
        }
    }
    void operator()(const model::GatedActivation&) const {
        emit_elementwise(Elementwise::Kind::gated_backward, {dy(), mine.input});
    }
    void operator()(const model::Pool&) const {
        std::vector<TensorId> in{dy()};
        in.insert(in.end(), mine.saved.begin(), mine.saved.end());
        emit_data(pool_of(a, layer, Pass::backward_data), std::move(in));
    }
    void operator()(const model::Add&) const {
        give(0, dy());
        give(1, dy());
    }
    void operator()(const model::Dropout& dropout) const {
        if (dropout.probability == 0) return give(0, dy());
        emit_data(dropout_of(a, layer, Pass::backward_data), {dy(), mine.saved[0]});
    }
    void operator()(const model::Embedding&) const {
        if (!trains(0)) return;
        emit("backward_weights", embedding_of(a, layer, Pass::backward_weights), {dy(), mine.input}, {contribution(0)});
        done(0);
    }
    void operator()(const model::PositionEmbedding& p) const {
        give(0, dy());
        if (!trains(0)) return;
        Write write = contribution(0);
        const std::int64_t used = layer.output.elements();
        const std::int64_t all = p.positions * p.hidden;
        if (used != all) {
            const TensorId table = write.tensor;
            write.tensor = a.graph.add_view(layer.name + ".used_gradient", table, 0, layer.output, Layout::row_major);
            const TensorId rest = a.graph.add_view(layer.name + ".unused_gradient", table, used,
                                                   {p.positions - layer.output[0], p.hidden}, Layout::row_major);
            emit("clear_unused", Fill{all - used, 0}, {}, {{rest, Access::overwrite}});
        }
        emit("backward_weights", ColumnSum{a.batch(), used}, {dy()}, {write});
        done(0);
    }
    void operator()(const model::Rotary&) const { emit_elementwise(Elementwise::Kind::rotary_backward, {dy()}); }
    void operator()(const model::Attention&) const {
        emit_data(attention_of(a, layer, Pass::backward_data), {dy(), mine.input, mine.output, mine.saved[0]});
    }
    void operator()(const model::Flatten&) const {
        if (!input_needs_gradient()) return;
        const Tensor input = a.graph.tensor(mine.input);
        give(0, a.graph.add_view(layer.name + ".input_gradient", dy(), 0, input.shape, input.layout));
    }
    void operator()(const model::FirstToken&) const {
        emit_data(first_token_of(a, layer, Pass::backward_data), {dy()});
    }
    void operator()(const model::SoftmaxLoss&) const {
        std::vector<TensorId> in{mine.input, a.labels, mine.saved[0]};
        if (a.loss_scale.is_valid()) in.push_back(a.loss_scale);
        emit_data(softmax_loss_of(a, layer, Pass::backward_data), std::move(in));
    }
};

}  // namespace

void add_backward(Assembly& a) {
    for (std::size_t i = a.layers.size(); i-- > 0;) {
        const model::Layer& layer = a.model().layers[i];
        const bool is_loss = i + 1 == a.layers.size();
        if (!a.layers[i].needs_gradient || (!is_loss && !a.layers[i].gradient.is_valid())) continue;
        std::visit(Backward{a, layer, a.layers[i], model::LayerId{static_cast<std::int32_t>(i)}}, layer.kind);
    }
}

}  // namespace lockstep::step
