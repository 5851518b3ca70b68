#include "step/op_cost.hpp"

#include <algorithm>

namespace lockstep::step {

namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

double per_element(const Elementwise& e) {
    using Kind = Elementwise::Kind;
    switch (e.kind) {
        case Kind::relu:
        case Kind::relu_backward:
        case Kind::add:
        case Kind::scale:
        case Kind::add_positions:
        case Kind::add_bias: return 1;
        case Kind::gelu: return 12;
        case Kind::gelu_backward: return 18;
        case Kind::silu: return 6;
        case Kind::silu_backward: return 8;
        case Kind::tanh: return 6;
        case Kind::tanh_backward: return 3;
        case Kind::sigmoid: return 5;
        case Kind::sigmoid_backward: return 3;
        case Kind::channel_scale: return 1;
        case Kind::channel_scale_backward: return 3;
        case Kind::gated: return 7;
        case Kind::gated_backward: return 5.5;  // 11 for each output of the forward pass, which has half as many
        case Kind::rotary:
        case Kind::rotary_backward: {
            const double heads = real(e.rotary.heads + 2 * e.rotary.kv_heads);
            return heads > 0 ? 3 * real(e.rotary.heads + e.rotary.kv_heads) / heads : 0;
        }
    }
    return 0;
}

double per_element(const Norm& norm) {
    const bool is_forward = norm.pass == Pass::forward;
    if (norm.kind == model::Norm::Kind::rms) return is_forward ? 4 : 9;
    return is_forward ? 7 : 13;
}

/// The parts of the forward pass add up to the whole; what is done once a row counts as nothing in both.
double per_logit(const SoftmaxLoss& loss) {
    using Part = SoftmaxLoss::Part;
    if (loss.pass != Pass::forward) return 3;
    switch (loss.part) {
        case Part::whole: return 7;
        case Part::row_max: return 1;
        case Part::row_sums: return 6;
        case Part::finish: return 0;
    }
    return 0;
}

struct FlopsOf {
    const Op& op;

    double operator()(const Gemm& g) const {
        const double bias = op.in.size() > 2 ? real(g.batch) * real(g.m) * real(g.n) : 0;
        return 2 * real(g.batch) * real(g.m) * real(g.n) * real(g.k) + bias;
    }
    double operator()(const Convolution& c) const {
        const double outputs = real(c.n) * real(c.out_channels) * real(c.out_height()) * real(c.out_width());
        const bool has_bias =
            c.pass == Pass::forward ? op.in.size() > 2 : c.pass == Pass::backward_weights && op.out.size() > 1;
        return 2 * outputs * real(c.in_channels / c.groups) * real(c.kernel * c.width_of_kernel()) +
               (has_bias ? outputs : 0);
    }
    /// Of a ring step: the scores of the local queries against as many keys, masked or not. In zigzag order half of
    /// them are under the causal mask in every step and on every rank.
    double operator()(const Attention& a) const {
        const double scores = real(a.batch) * real(a.heads) * real(a.seq) * real(a.seq + a.memory);
        const double products = (a.relative ? 6 : 4) * scores * real(a.head_dim);
        return a.pass == Pass::forward ? products + 7 * scores : 2 * products + 4 * scores;
    }
    double operator()(const Norm& n) const {
        return per_element(n) * real(n.rows) * real(n.features) * real(n.spatial);
    }
    double operator()(const Elementwise& e) const { return per_element(e) * real(e.count); }
    double operator()(const ColumnSum& s) const { return real(s.rows) * real(s.columns); }
    double operator()(const PositionSum& s) const { return real(s.seq) * real(s.batch) * real(s.width); }
    double operator()(const Embedding& e) const {
        return e.pass == Pass::forward ? 0 : real(e.tokens) * real(e.hidden);
    }
    double operator()(const FirstToken&) const { return 0; }
    double operator()(const SoftmaxLoss& l) const { return per_logit(l) * real(l.rows) * real(l.classes); }
    double operator()(const Pool& p) const {
        const double outputs = real(p.n) * real(p.channels) * real(p.out_height()) * real(p.out_width());
        const bool is_scatter = p.kind == model::Pool::Kind::max && p.pass != Pass::forward;
        return is_scatter ? outputs : outputs * real(p.kernel * p.kernel);
    }
    double operator()(const Dropout& d) const { return 2 * real(d.count); }
    double operator()(const OptimizerUpdate& u) const {
        return (u.kind == plan::Optimizer::adam ? 15 : 4) * real(u.count);
    }
    double operator()(const Reorder&) const { return 0; }
    double operator()(const Cast&) const { return 0; }
    double operator()(const Fill&) const { return 0; }
    double operator()(const FoundInf& f) const { return real(f.count); }
    double operator()(const BlockTranspose&) const { return 0; }
    double operator()(const Slice&) const { return 0; }
    double operator()(const UpdateLossScale&) const { return 1; }
    double operator()(const Route&) const { return 0; }
    double operator()(const Dispatch& d) const {
        return d.pass == Pass::forward ? 0 : real(d.tokens) * real(d.top_k) * real(d.width);
    }
    double operator()(const Combine& c) const {
        const double products = 2 * real(c.tokens) * real(c.top_k) * real(c.width);
        const double logits = real(c.tokens) * real(c.experts);
        return c.pass == Pass::forward ? products + 7 * logits : 2 * products + 10 * logits;
    }
};

double written(const StepGraph& graph, const Write& write) {
    const bool is_read = write.access == Access::accumulate || write.access == Access::update ||
                         (write.access == Access::accumulate_micro_batches && graph.micro_batches > 1);
    return graph.tensor(write.tensor).bytes().value * (is_read ? 2 : 1);
}

/// Elements that an op touches of a table it looks rows up in; 0 when it reads all of its operand.
double looked_up(const Compute& compute, std::size_t slot) {
    if (slot != 1) return 0;
    if (const auto* e = std::get_if<Embedding>(&compute); e && e->pass == Pass::forward)
        return std::min(real(e->tokens), real(e->vocab)) * real(e->hidden);
    if (const auto* e = std::get_if<Elementwise>(&compute); e && e->kind == Elementwise::Kind::add_positions)
        return std::min(real(e->count) / real(e->batch), real(e->positions) * real(e->width));
    return 0;
}

/// The dense gradient of a table is cleared, then its rows are added to.
double added_to(const Compute& compute) {
    const auto* e = std::get_if<Embedding>(&compute);
    if (!e || e->pass == Pass::forward) return 0;
    return std::min(real(e->tokens), real(e->vocab)) * real(e->hidden);
}

}  // namespace

Flops flops_of(const Op& op) {
    const Compute* compute = std::get_if<Compute>(&op.kind);
    return Flops{compute ? std::visit(FlopsOf{op}, *compute) : 0};
}

Bytes bytes_of(const StepGraph& graph, const Op& op) {
    double bytes = 0;
    if (const auto* collective = std::get_if<Collective>(&op.kind)) {
        for (TensorId id : op.in) bytes = std::max(bytes, graph.tensor(id).bytes().value);
        for (const Write& write : op.out) bytes = std::max(bytes, graph.tensor(write.tensor).bytes().value);
        return Bytes{std::max(bytes, real(collective->count) * size_of(collective->dtype).value)};
    }
    if (std::holds_alternative<StreamWait>(op.kind)) return Bytes{};
    const Compute* compute = std::get_if<Compute>(&op.kind);
    // A slice touches the columns it moves, whatever is beside them.
    const Slice* slice = compute ? std::get_if<Slice>(compute) : nullptr;
    if (slice) return 2 * real(slice->rows) * real(slice->kept) * size_of(graph.tensor(op.in.at(0)).dtype);
    for (std::size_t i = 0; i < op.in.size(); ++i) {
        const Tensor& tensor = graph.tensor(op.in[i]);
        const double part = compute ? looked_up(*compute, i) : 0;
        bytes += part > 0 ? part * size_of(tensor.dtype).value : tensor.bytes().value;
    }
    for (const Write& write : op.out) {
        bytes += written(graph, write);
        if (compute) bytes += added_to(*compute) * size_of(graph.tensor(write.tensor).dtype).value;
    }
    return Bytes{bytes};
}

}  // namespace lockstep::step
