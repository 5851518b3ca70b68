#include "step/forward_ops.hpp"

#include <fmt/format.h>

#include "step/attention_ops.hpp"
#include "step/expert_ops.hpp"
#include "step/layer_step.hpp"
#include "step/ring_products.hpp"
#include "step/tensor_parallel.hpp"

namespace lockstep::step {

using plan::Spread;
using plan::WeightSplit;

namespace {

TensorId pack(Assembly& a, Chunk& chunk, model::LayerId id, Pass pass) {
    const model::Layer& layer = a.layer(id);
    const TensorId weight = a.tensors_of(chunk, layer.parameters[0]).working;
    const TensorId packed =
        a.add_like(layer.name + (pass == Pass::forward ? ".packed_forward" : ".packed_backward"), weight);
    Tensor& tensor = a.graph.graph().tensors[packed.index()];
    tensor.role = Role::workspace;
    tensor.lifetime = Lifetime::step;
    tensor.layout = Layout::opaque;
    tensor.parameter = {};
    const Reorder reorder{tensor.elements(), convolution_of(a, layer, pass)};
    a.graph.add_op(layer.name + (pass == Pass::forward ? ".reorder_forward" : ".reorder_backward"), Compute{reorder},
                   {weight}, {{packed, Access::overwrite}}, model::LayerId{});
    return packed;
}

/// Appends the forward ops of one layer.
struct Forward : LayerStep {
    using LayerStep::LayerStep;

    std::vector<TensorId> with_parameters(std::vector<TensorId> in, std::size_t first = 0) const {
        for (std::size_t i = first; i < layer.parameters.size(); ++i) in.push_back(working(i));
        return in;
    }
    void save(const char* what, const Shape& shape, DType dtype) const {
        mine.saved.push_back(add_local(what, shape, dtype));
    }
    /// A saved tensor of the output's elements.
    void save_like_output(const char* what, DType dtype) const {
        const TensorId saved =
            a.add_activation(layer.name + "." + what, layer.output, dtype, a.kind_of(id), split().output);
        mine.saved.push_back(saved);
    }
    void emit_output(Compute op, std::vector<TensorId> in) const {
        mine.output = a.add_output(layer.name, id);
        std::vector<Write> out{{mine.output, Access::overwrite}};
        for (const TensorId saved : mine.saved) out.push_back({saved, Access::overwrite});
        emit("forward", std::move(op), std::move(in), std::move(out));
    }
    void emit_elementwise(Elementwise::Kind kind, std::vector<TensorId> in) const {
        const Elementwise op = elementwise_of(a, layer, in[0], kind);
        emit_output(op, std::move(in));
    }
    /// The op's result is a sum over tp: writes it apart and reduces it into the output.
    void emit_sums(Compute op, std::vector<TensorId> in) const {
        const TensorId sums = a.add_output(layer.name + ".sums", id, Spread::whole);
        emit("forward", std::move(op), std::move(in), {{sums, Access::overwrite}});
        mine.output = reduce_sums(a, layer.name, sums, split().output, id);
    }

    void operator()(const model::Convolution&) const {
        const TensorId weight = a.is_packed() ? mine.packed_weight : working(0);
        emit_output(convolution_of(a, layer, Pass::forward), with_parameters({mine.input, weight}, 1));
    }
    void operator()(const model::Linear&) const {
        const bool is_ring = is_ring_product(*this);
        if (split().weights != WeightSplit::rows) {
            if (is_ring) return add_gathered_product(*this, with_parameters({}, 1));
            return emit_output(linear_forward(a, mine.input, working(0)), with_parameters({mine.input}));
        }
        if (is_ring)
            mine.output = add_scattered_product(*this);
        else
            emit_sums(linear_forward(a, mine.input, working(0)), {mine.input, working(0)});
        if (layer.parameters.size() < 2) return;
        // The bias is added once, to the sum.
        const TensorId sum = mine.output;
        mine.output = a.add_output(layer.name + ".biased", id);
        emit("add_bias", Compute{elementwise_of(a, layer, sum, Elementwise::Kind::add_bias)}, {sum, working(1)},
             {{mine.output, Access::overwrite}});
    }
    void operator()(const model::Norm& n) const {
        const Norm op = norm_of(a, layer, mine.input, Pass::forward);
        const Shape statistics{n.kind == model::Norm::Kind::batch ? op.features : op.rows};
        if (n.kind != model::Norm::Kind::rms) save("mean", statistics, DType::fp32);
        save("inverse_deviation", statistics, DType::fp32);
        emit_output(op, with_parameters({mine.input}));
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
            case Kind::sigmoid: return emit_elementwise(Elementwise::Kind::sigmoid, {mine.input});
        }
    }
    void operator()(const model::GatedActivation&) const { emit_elementwise(Elementwise::Kind::gated, {mine.input}); }
    void operator()(const model::Pool& pool) const {
        if (pool.kind == model::Pool::Kind::max) save_like_output("indices", DType::int32);
        emit_output(pool_of(a, layer, Pass::forward), {mine.input});
    }
    void operator()(const model::Add&) const {
        emit_elementwise(Elementwise::Kind::add, {mine.input, a.source(chunk, id, 1)});
    }
    void operator()(const model::ChannelScale&) const {
        emit_elementwise(Elementwise::Kind::channel_scale, {mine.input, a.source(chunk, id, 1)});
    }
    void operator()(const model::Concatenate&) const {
        const std::vector<TensorId> inputs = all_sources();
        mine.output = a.add_output(layer.name, id);
        for (std::size_t slot = 0; slot < inputs.size(); ++slot)
            emit(fmt::format("place{}", slot),
                 Compute{part_of_concatenation(a, layer, inputs, slot, Pass::backward_data)}, {inputs[slot]},
                 {{mine.output, slot == 0 ? Access::overwrite : Access::update}});
    }
    void operator()(const model::Dropout& dropout) const {
        if (dropout.probability == 0) {
            mine.output = mine.input;
            return;
        }
        save_like_output("mask", DType::uint8);
        emit_output(dropout_of(a, layer, mine.input, Pass::forward), {mine.input});
    }
    void operator()(const model::Embedding&) const {
        const Embedding op = embedding_of(a, mine.input, working(0), Pass::forward);
        if (split().weights == WeightSplit::vocabulary) return emit_sums(op, with_parameters({mine.input}));
        emit_output(op, with_parameters({mine.input}));
    }
    void operator()(const model::PositionEmbedding&) const {
        emit_elementwise(Elementwise::Kind::add_positions, {mine.input, working(0)});
    }
    void operator()(const model::Rotary&) const { emit_elementwise(Elementwise::Kind::rotary, {mine.input}); }
    void operator()(const model::Attention&) const { add_attention_forward(*this); }
    void operator()(const model::Flatten&) const {
        Shape shape{a.batch(), layer.output.elements()};
        mine.output = a.graph.add_view(layer.name, mine.input, 0, std::move(shape), Layout::row_major);
    }
    void operator()(const model::FirstToken&) const {
        emit_output(first_token_of(a, layer, Pass::forward), {mine.input});
    }
    void operator()(const model::Dispatch&) const { add_dispatch_forward(*this); }
    void operator()(const model::GroupedLinear&) const {
        emit_output(grouped_forward(a, mine.input, working(0)), {mine.input, working(0)});
    }
    void operator()(const model::Combine&) const { add_combine_forward(*this); }
    void operator()(const model::SoftmaxLoss&) const {
        SoftmaxLoss op = softmax_loss_of(a, mine.input, Pass::forward);
        Tensor loss;
        loss.name = "loss";
        loss.shape = {1};
        loss.role = Role::scalar;
        loss.lifetime = Lifetime::carried;
        mine.output = a.loss = a.graph.add(std::move(loss));
        save("log_sum_exp", {op.rows}, DType::fp32);
        const std::vector<Write> results{{a.loss, Access::accumulate_micro_batches},
                                         {mine.saved[0], Access::overwrite}};
        if (split().input != Spread::features) return emit("forward", Compute{op}, {mine.input, a.labels}, results);

        const TensorId largest = add_local("row_max", {op.rows}, DType::fp32);
        const TensorId sums = add_local("row_sums", {2, op.rows}, DType::fp32);
        op.part = SoftmaxLoss::Part::row_max;
        emit("row_max", Compute{op}, {mine.input}, {{largest, Access::overwrite}});
        all_reduce_over_tp(a, layer.name + ".row_max.all_reduce", largest, Reduction::max, id);
        op.part = SoftmaxLoss::Part::row_sums;
        emit("row_sums", Compute{op}, {mine.input, a.labels, largest}, {{sums, Access::overwrite}});
        all_reduce_over_tp(a, layer.name + ".row_sums.all_reduce", sums, Reduction::sum, id);
        op.part = SoftmaxLoss::Part::finish;
        emit("forward", Compute{op}, {largest, sums}, results);
    }
};

/// Enters the parameters of the model's block `unit` and those of the blocks behind it that are fetched ahead.
class Fetcher {
public:
    Fetcher(Assembly& a, Chunk& chunk) : a_(a), chunk_(chunk) {
        if (a.zero() != 3 || keeps_parameters(a)) return;
        for (const model::LayerId layer : chunk.layers) {
            const int unit = a.layer(layer).repeat_group;
            if (unit >= 0 && (units_.empty() || units_.back() != unit)) units_.push_back(unit);
        }
        gather_unit(a, chunk, -1, "forward");
    }
    /// `done`: what the block before has left behind; not before that its place is free for another.
    void enter(int unit, TensorId done) {
        if (units_.empty() || unit < 0) return;
        const bool is_first = fetched_ == 0;
        while (fetched_ < units_.size() && behind(unit) <= a_.split().prefetch)
            gather_unit(a_, chunk_, units_[fetched_++], "forward", is_first ? TensorId{} : done);
    }

private:
    /// How many blocks the next to be fetched is behind the one that is computed.
    int behind(int unit) const {
        for (std::size_t i = 0; i < units_.size(); ++i)
            if (units_[i] == unit) return static_cast<int>(fetched_ - i);
        return 0;
    }
    Assembly& a_;
    Chunk& chunk_;
    std::vector<int> units_;
    std::size_t fetched_ = 0;
};

std::size_t op_count(const Assembly& a, BlockId block) { return a.graph.block(block).ops.size(); }

}  // namespace

void pack_weights(Assembly& a, Chunk& chunk) {
    if (!a.is_packed()) return;
    for (const model::LayerId id : chunk.layers) {
        if (!std::holds_alternative<model::Convolution>(a.layer(id).kind)) continue;
        LayerTensors& mine = a.layers[id.index()];
        mine.packed_weight = pack(a, chunk, id, Pass::forward);
        if (a.gradient_of_source(chunk, id, 0) != nullptr)
            mine.packed_weight_backward = pack(a, chunk, id, Pass::backward_data);
    }
}

void add_forward(Assembly& a, Chunk& chunk) {
    Fetcher fetcher(a, chunk);
    chunk.gathered.clear();
    for (const model::LayerId id : chunk.layers) {
        const model::Layer& layer = a.layer(id);
        LayerTensors& mine = a.layers[id.index()];
        mine.source = a.source(chunk, id, 0);
        fetcher.enter(layer.repeat_group, mine.source);
        const std::size_t begin = op_count(a, chunk.forward);
        const Forward forward(a, chunk, id);
        mine.input = is_ring_product(forward) ? mine.source : whole_input(a, chunk, id, "gather");
        std::visit(forward, layer.kind);
        const std::size_t end = op_count(a, chunk.forward);
        chunk.forward_of_layer[id.value] = {begin, end};
        if (layer.repeat_group < 0) continue;
        chunk.forward_of_block.try_emplace(layer.repeat_group, OpRange{begin, end}).first->second.end = end;
    }
}

}  // namespace lockstep::step
