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
        case Kind::add_rows: return 1;
        case Kind::gelu: return 12;
        case Kind::gelu_backward: return 18;
        case Kind::silu: return 6;
        case Kind::silu_backward: return 8;
        case Kind::tanh: return 6;
        case Kind::tanh_backward: return 3;
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
        return 2 * outputs * real(c.in_channels / c.groups) * real(c.kernel * c.kernel) + (has_bias ? outputs : 0);
    }
    double operator()(const Attention& a) const {
        const double scores = real(a.batch) * real(a.heads) * real(a.seq) * real(a.seq);
        const double products = 4 * scores * real(a.head_dim);
        return a.pass == Pass::forward ? products + 7 * scores : 2 * products + 4 * scores;
    }
    double operator()(const Norm& n) const {
        return per_element(n) * real(n.rows) * real(n.features) * real(n.spatial);
    }
    double operator()(const Elementwise& e) const { return per_element(e) * real(e.count); }
    double operator()(const ColumnSum& s) const { return real(s.rows) * real(s.columns); }
    double operator()(const Embedding& e) const {
        return e.pass == Pass::forward ? 0 : real(e.tokens) * real(e.hidden);
    }
    double operator()(const FirstToken&) const { return 0; }
    double operator()(const SoftmaxLoss& l) const {
        return (l.pass == Pass::forward ? 7 : 3) * real(l.rows) * real(l.classes);
    }
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
    double operator()(const UpdateLossScale&) const { return 1; }
};

double written(const StepGraph& graph, const Write& write) {
    const bool is_read = write.access == Access::accumulate || write.access == Access::update ||
                         (write.access == Access::accumulate_micro_batches && graph.micro_batches > 1);
    return graph.tensor(write.tensor).bytes().value * (is_read ? 2 : 1);
}

double touched_rows(const StepGraph& graph, const Embedding& e, TensorId table) {
    return std::min(real(e.tokens), real(e.vocab)) * real(e.hidden) * size_of(graph.tensor(table).dtype).value;
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
    const Compute* compute = std::get_if<Compute>(&op.kind);
    const Embedding* embedding = compute ? std::get_if<Embedding>(compute) : nullptr;
    for (std::size_t i = 0; i < op.in.size(); ++i) {
        const bool is_table = embedding && embedding->pass == Pass::forward && i == 1;
        bytes += is_table ? touched_rows(graph, *embedding, op.in[i]) : graph.tensor(op.in[i]).bytes().value;
    }
    for (const Write& write : op.out) {
        bytes += written(graph, write);
        // The dense gradient of a table is cleared, then its rows are added to.
        if (embedding && embedding->pass != Pass::forward) bytes += touched_rows(graph, *embedding, write.tensor);
    }
    return Bytes{bytes};
}

}  // namespace lockstep::step
