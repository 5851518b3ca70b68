#include "step/backward_ops.hpp"

#include <fmt/format.h>

#include "step/attention_ops.hpp"
#include "step/expert_ops.hpp"
#include "step/parameter_gradients.hpp"
#include "step/recompute.hpp"
#include "step/ring_products.hpp"
#include "step/tensor_parallel.hpp"

namespace lockstep::step {

using plan::Spread;
using plan::WeightSplit;

namespace {

/// Appends the backward ops of one layer whose output gradient is complete.
struct Backward : LayerStep {
    using LayerStep::LayerStep;

    TensorId dy() const { return mine.gradient; }
    bool trains(std::size_t slot) const { return has_gradient(*this, slot); }
    bool input_needs_gradient(std::size_t slot = 0) const { return a.gradient_of_source(chunk, id, slot) != nullptr; }
    TensorId new_input_gradient() const { return a.add_like(layer.name + ".input_gradient", mine.source); }

    /// Hands a gradient to the layer in an input slot; a second one is added to what is there.
    void give(std::size_t slot, TensorId gradient) const {
        TensorId* sum = a.gradient_of_source(chunk, id, slot);
        if (sum == nullptr) return;
        if (!sum->is_valid()) {
            *sum = gradient;
            return;
        }
        const TensorId total = a.add_like(layer.name + ".gradient_sum", gradient);
        Elementwise add;
        add.count = a.graph.tensor(total).elements();
        emit("add_gradient", Compute{add}, {*sum, gradient}, {{total, Access::overwrite}});
        *sum = total;
    }
    void emit_data(Compute op, std::vector<TensorId> in) const {
        if (!input_needs_gradient()) return;
        const TensorId dx = new_input_gradient();
        emit("backward_data", std::move(op), std::move(in), {{dx, Access::overwrite}});
        give(0, dx);
    }
    void emit_elementwise(Elementwise::Kind kind, std::vector<TensorId> in) const {
        const TensorId sized = kind == Elementwise::Kind::gated_backward ? mine.input : in[0];
        emit_data(elementwise_of(a, layer, sized, kind), std::move(in));
    }
    Write contribution(std::size_t slot) const { return next_contribution(*this, slot); }
    void done(std::size_t slot) const { contribution_done(*this, slot); }
    /// The output's gradient over the whole sequence.
    TensorId whole_dy() const {
        return split().output == Spread::sequence ? gather_sequence(a, layer.name + ".gradient_gather", dy(), id)
                                                  : dy();
    }

    /// dw in the kernel's own order, and the reorder that makes it a gradient.
    void emit_packed_weights(const Convolution& op, std::vector<Write> bias) const {
        const TensorId dw = a.add_like(layer.name + ".packed_gradient", working(0));
        Tensor& packed = a.graph.graph().tensors[dw.index()];
        packed.role = Role::workspace;
        packed.lifetime = Lifetime::micro_batch;
        packed.layout = Layout::opaque;
        packed.parameter = {};
        const Reorder reorder{packed.elements(), op};
        std::vector<Write> out{{dw, Access::overwrite}};
        out.insert(out.end(), bias.begin(), bias.end());
        emit("backward_weights", Compute{op}, {dy(), mine.input}, std::move(out));
        emit("reorder_gradient", Compute{reorder}, {dw}, {contribution(0)});
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
            emit("backward_weights", Compute{op}, {dy(), mine.input}, std::move(out));
        }
        if (trains(1)) done(1);
        done(0);
    }
    void operator()(const model::Linear&) const {
        if (is_ring_product(*this)) return emit_ring();
        const bool is_rows = split().weights == WeightSplit::rows;
        const TensorId gradient = is_rows ? whole_dy() : dy();
        const TensorId x = whole_input(a, chunk, id, "regather");
        emit_linear_data(gradient);
        emit_bias();
        if (trains(0)) {
            emit("backward_weights", Compute{linear_backward_weights(a, gradient, x)}, {gradient, x},
                 {contribution(0)});
            done(0);
        }
    }
    void emit_bias() const {
        if (!trains(1)) return;
        // A bias behind the sum over tp sees the rows of the output.
        const Tensor& rows = a.graph.tensor(dy());
        emit("backward_bias", Compute{ColumnSum{rows_of(rows), rows.shape.back()}}, {dy()}, {contribution(1)});
        done(1);
    }
    void emit_ring() const {
        emit_bias();
        const bool needs = input_needs_gradient();
        std::optional<Write> weight;
        if (trains(0)) weight = contribution(0);
        const TensorId dx = add_ring_backward(*this, needs, weight);
        if (needs) give(0, dx);
        if (trains(0)) done(0);
    }
    void emit_linear_data(TensorId gradient) const {
        if (!input_needs_gradient()) return;
        const Gemm op = linear_backward_data(a, gradient, working(0));
        if (split().weights != WeightSplit::columns) return emit_data(op, {gradient, working(0)});
        const TensorId sums = a.add_like(layer.name + ".input_gradient.sums", mine.input);
        emit("backward_data", Compute{op}, {gradient, working(0)}, {{sums, Access::overwrite}});
        give(0, reduce_sums(a, layer.name + ".input_gradient", sums, a.splits[layer.inputs[0].index()].output, id));
    }
    /// A frozen parameter's gradient comes out of the kernel all the same.
    Write contribution_or_scratch(std::size_t slot) const {
        if (trains(slot)) return contribution(slot);
        const TensorId id_of_scratch =
            a.add_like(a.parameter(layer.parameters[slot]).name + ".unused_gradient", working(slot));
        Tensor& scratch = a.graph.graph().tensors[id_of_scratch.index()];
        scratch.role = Role::workspace;
        scratch.lifetime = Lifetime::micro_batch;
        scratch.parameter = {};
        return {id_of_scratch, Access::overwrite};
    }
    void operator()(const model::Norm&) const {
        const TensorId dx = new_input_gradient();
        std::vector<TensorId> in{dy(), mine.input, working(0)};
        in.insert(in.end(), mine.saved.begin(), mine.saved.end());
        std::vector<Write> out{{dx, Access::overwrite}};
        for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot) out.push_back(contribution_or_scratch(slot));
        emit("backward", Compute{norm_of(a, layer, mine.input, Pass::backward_data)}, std::move(in), std::move(out));
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
            case Kind::sigmoid: return emit_elementwise(Elementwise::Kind::sigmoid_backward, {dy(), mine.output});
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
    void operator()(const model::ChannelScale&) const {
        const TensorId factors = a.source(chunk, id, 1);
        const TensorId dx = new_input_gradient();
        const TensorId dfactors = a.add_like(layer.name + ".factor_gradient", factors);
        emit("backward", Compute{elementwise_of(a, layer, dy(), Elementwise::Kind::channel_scale_backward)},
             {dy(), mine.input, factors}, {{dx, Access::overwrite}, {dfactors, Access::overwrite}});
        give(0, dx);
        give(1, dfactors);
    }
    void operator()(const model::Concatenate&) const {
        const std::vector<TensorId> inputs = all_sources();
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (!input_needs_gradient(slot)) continue;
            const TensorId dx = a.add_like(fmt::format("{}.input_gradient{}", layer.name, slot), inputs[slot]);
            emit(fmt::format("backward{}", slot), Compute{part_of_concatenation(a, layer, inputs, slot, Pass::forward)},
                 {dy()}, {{dx, Access::overwrite}});
            give(slot, dx);
        }
    }
    void operator()(const model::Dropout& dropout) const {
        if (dropout.probability == 0) return give(0, dy());
        emit_data(dropout_of(a, layer, dy(), Pass::backward_data), {dy(), mine.saved[0]});
    }
    void operator()(const model::Embedding&) const {
        if (!trains(0)) return;
        const TensorId gradient = split().weights == WeightSplit::vocabulary ? whole_dy() : dy();
        emit("backward_weights", Compute{embedding_of(a, mine.input, working(0), Pass::backward_weights)},
             {gradient, mine.input}, {contribution(0)});
        done(0);
    }
    void operator()(const model::PositionEmbedding& p) const {
        give(0, dy());
        if (!trains(0)) return;
        const Tensor& rows = a.graph.tensor(dy());
        const PositionSum sum{rows.shape[0], rows.shape[1], rows.shape[2], p.positions};
        emit("backward_weights", Compute{sum}, {dy()}, {contribution(0)});
        done(0);
    }
    void operator()(const model::Rotary&) const { emit_elementwise(Elementwise::Kind::rotary_backward, {dy()}); }
    void operator()(const model::Attention&) const {
        const auto* memory = layer.inputs.size() > 1 ? a.gradient_of_source(chunk, id, 1) : nullptr;
        if (!input_needs_gradient() && memory == nullptr) return;
        const AttentionGradients gradients = add_attention_backward(*this);
        give(0, gradients.qkv);
        if (memory != nullptr) give(1, gradients.memory);
    }
    void operator()(const model::Flatten&) const {
        if (!input_needs_gradient()) return;
        const Tensor input = a.graph.tensor(mine.input);
        give(0, a.graph.add_view(layer.name + ".input_gradient", dy(), 0, input.shape, input.layout));
    }
    void operator()(const model::FirstToken&) const {
        emit_data(first_token_of(a, layer, Pass::backward_data), {dy()});
    }
    void operator()(const model::Dispatch&) const {
        if (input_needs_gradient()) give(0, add_dispatch_backward(*this));
    }
    void operator()(const model::GroupedLinear&) const {
        emit_data(grouped_backward_data(a, dy(), working(0)), {dy(), working(0)});
        if (!trains(0)) return;
        emit("backward_weights", Compute{grouped_backward_weights(a, dy(), mine.input)}, {dy(), mine.input},
             {contribution(0)});
        done(0);
    }
    void operator()(const model::Combine&) const {
        const CombineGradients gradients = add_combine_backward(*this);
        give(0, gradients.rows);
        give(1, gradients.logits);
    }
    void operator()(const model::SoftmaxLoss&) const {
        std::vector<TensorId> in{mine.input, a.labels, mine.saved[0]};
        if (a.loss_scale.is_valid()) in.push_back(a.loss_scale);
        emit_data(softmax_loss_of(a, mine.input, Pass::backward_data), std::move(in));
    }
};

/// Blocks of the model in the order of the backward pass.
std::vector<int> blocks_backward(const Assembly& a, const Chunk& chunk) {
    std::vector<int> blocks;
    for (auto id = chunk.layers.rbegin(); id != chunk.layers.rend(); ++id) {
        const int block = a.layer(*id).repeat_group;
        if (block >= 0 && (blocks.empty() || blocks.back() != block)) blocks.push_back(block);
    }
    return blocks;
}

/// What happens before the first backward op of each block: its parameters are fetched, its forward pass is repeated.
class BlockEntry {
public:
    BlockEntry(Assembly& a, Chunk& chunk) : a_(a), chunk_(chunk), blocks_(blocks_backward(a, chunk)) {
        gathers_ = a.zero() == 3 && !keeps_parameters(a) && a.split().reshard_after_forward;
        if (gathers_) gather_unit(a, chunk, -1, "backward");
    }
    /// `done`: the gradient that the block behind has left; not before that its place is free for another.
    void enter(int block, TensorId done) {
        if (block < 0 || block == current_) return;
        current_ = block;
        ++entered_;
        while (gathers_ && fetched_ < blocks_.size() &&
               fetched_ < entered_ + static_cast<std::size_t>(a_.split().prefetch))
            gather_unit(a_, chunk_, blocks_[fetched_++], "backward", done);
        if (a_.split().recompute == plan::Recompute::full) recompute_block(a_, chunk_, block);
    }

private:
    Assembly& a_;
    Chunk& chunk_;
    std::vector<int> blocks_;
    bool gathers_ = false;
    int current_ = -1;
    std::size_t entered_ = 0, fetched_ = 0;
};

}  // namespace

void add_backward(Assembly& a, Chunk& chunk) {
    BlockEntry entry(a, chunk);
    chunk.gathered.clear();
    if (chunk.leaving.is_valid()) a.layers[chunk.leaving.index()].gradient = chunk.received_gradient;
    for (auto id = chunk.layers.rbegin(); id != chunk.layers.rend(); ++id) {
        const model::Layer& layer = a.layer(*id);
        const LayerTensors& mine = a.layers[id->index()];
        const bool is_loss = std::holds_alternative<model::SoftmaxLoss>(layer.kind);
        if (!mine.needs_gradient || (!is_loss && !mine.gradient.is_valid())) continue;
        entry.enter(layer.repeat_group, mine.gradient);
        if (a.split().recompute == plan::Recompute::selective && std::holds_alternative<model::Attention>(layer.kind))
            recompute_layer(a, chunk, *id);
        std::visit(Backward(a, chunk, *id), layer.kind);
    }
    finish_pass(a, chunk);
}

}  // namespace lockstep::step
