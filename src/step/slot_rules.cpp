#include "step/slot_rules.hpp"

namespace lockstep::step {

namespace {

using Type = SlotType;
constexpr SlotNeed optional = SlotNeed::optional;

struct RulesOf {
    const StepGraph& graph;
    const Op& op;

    SlotRules operator()(const Gemm& g) const {
        return {{{"A", g.batch * g.m * g.k, Type::floating},
                 {"B", g.batch * g.n * g.k},
                 {"bias", g.n, Type::like_first, optional}},
                {{"C", g.batch * g.m * g.n, Type::floating}}};
    }
    SlotRules operator()(const Convolution& c) const {
        const std::int64_t x = c.n * c.in_channels * c.height * c.width;
        const std::int64_t y = c.n * c.out_channels * c.out_height() * c.out_width();
        const std::int64_t w = c.out_channels * (c.in_channels / c.groups) * c.kernel * c.width_of_kernel();
        switch (c.pass) {
            case Pass::forward:
                return {{{"x", x, Type::floating}, {"w", w}, {"bias", c.out_channels, Type::like_first, optional}},
                        {{"y", y}}};
            case Pass::backward_data: return {{{"dy", y, Type::floating}, {"w", w}}, {{"dx", x}}};
            case Pass::backward_weights:
                return {{{"dy", y, Type::floating}, {"x", x}},
                        {{"dw", w, Type::floating}, {"dbias", c.out_channels, Type::floating, optional}}};
        }
        return {};
    }
    SlotRules operator()(const Attention& a) const {
        const Slot qkv{"qkv", a.batch * a.seq * (a.heads + 2 * a.kv_heads) * a.head_dim, Type::floating};
        const Slot context{"context", a.batch * a.seq * a.heads * a.head_dim};
        const Slot log_sum_exp{"log-sum-exp", a.batch * a.heads * a.seq, Type::fp32};
        const Slot dcontext{"dcontext", context.elements, Type::floating};
        const Slot dqkv{"dqkv", qkv.elements};
        if (a.part == Attention::Part::ring) {
            const Slot kv{"kv", a.batch * a.seq * 2 * a.kv_heads * a.head_dim};
            if (a.pass == Pass::forward) return {{qkv, kv}, {context, log_sum_exp}};
            return {{dcontext, {"qkv", qkv.elements}, kv, context, log_sum_exp}, {dqkv, {"dkv", kv.elements}}};
        }
        SlotRules rules;
        const Slot memory{"memory", a.batch * a.memory * (a.heads + 2 * a.kv_heads) * a.head_dim};
        rules.in = a.pass == Pass::forward ? std::vector{qkv} : std::vector{dcontext, {"qkv", qkv.elements}};
        if (a.memory > 0) rules.in.push_back(memory);
        if (a.pass != Pass::forward) rules.in.push_back(context);
        rules.out = {a.pass == Pass::forward ? context : dqkv};
        if (a.memory > 0 && a.pass != Pass::forward) rules.out.push_back({"dmemory", memory.elements});
        auto& saved = a.pass == Pass::forward ? rules.out : rules.in;
        const std::int64_t scores = a.batch * a.heads * a.seq * (a.seq + a.memory);
        if (a.algorithm == plan::AttentionAlgorithm::flash) {
            saved.push_back(log_sum_exp);
        } else {
            saved.push_back({"probabilities", scores});
            if (a.dropout > 0) saved.push_back({"mask", scores, Type::uint8});
            if (a.dropout > 0) saved.push_back({"dropped", scores});
        }
        return rules;
    }
    SlotRules operator()(const Norm& n) const {
        const bool is_batch = n.kind == model::Norm::Kind::batch;
        const std::int64_t x = n.rows * n.features * n.spatial;
        std::vector<Slot> statistics;
        if (n.kind != model::Norm::Kind::rms)
            statistics.push_back({"mean", is_batch ? n.features : n.rows, Type::fp32});
        statistics.push_back({"inverse_deviation", is_batch ? n.features : n.rows, Type::fp32});
        SlotRules rules;
        if (n.pass == Pass::forward) {
            rules.in = {{"x", x, Type::floating},
                        {"scale", n.features, Type::floating},
                        {"shift", n.features, Type::floating, optional}};
            rules.out = {{"y", x}};
            rules.out.insert(rules.out.end(), statistics.begin(), statistics.end());
            if (is_batch)
                for (const char* name : {"running_mean", "running_variance"})
                    rules.out.push_back({name, n.features, Type::fp32, optional});
            return rules;
        }
        rules.in = {{"dy", x, Type::floating}, {"x", x}, {"scale", n.features, Type::floating}};
        rules.in.insert(rules.in.end(), statistics.begin(), statistics.end());
        rules.out = {
            {"dx", x}, {"dscale", n.features, Type::floating}, {"dshift", n.features, Type::floating, optional}};
        return rules;
    }
    SlotRules operator()(const Elementwise& e) const {
        using Kind = Elementwise::Kind;
        const std::int64_t n = e.count;
        switch (e.kind) {
            case Kind::relu:
            case Kind::gelu:
            case Kind::silu:
            case Kind::tanh:
            case Kind::sigmoid:
            case Kind::scale:
            case Kind::rotary:
            case Kind::rotary_backward: return {{{"x", n, Type::floating}}, {{"y", n}}};
            case Kind::relu_backward:
            case Kind::sigmoid_backward:
            case Kind::tanh_backward: return {{{"dy", n, Type::floating}, {"y", n}}, {{"dx", n}}};
            case Kind::gelu_backward:
            case Kind::silu_backward: return {{{"dy", n, Type::floating}, {"x", n}}, {{"dx", n}}};
            case Kind::add: return {{{"a", n, Type::floating}, {"b", n}}, {{"c", n}}};
            case Kind::gated: return {{{"x", 2 * n, Type::floating}}, {{"y", n}}};
            case Kind::gated_backward: return {{{"dy", n / 2, Type::floating}, {"x", n}}, {{"dx", n}}};
            case Kind::add_positions: return {{{"x", n, Type::floating}, {"table", e.positions * e.width}}, {{"y", n}}};
            case Kind::add_bias: return {{{"x", n, Type::floating}, {"bias", e.width}}, {{"y", n}}};
            case Kind::channel_scale: return {{{"x", n, Type::floating}, {"factors", e.batch * e.width}}, {{"y", n}}};
            case Kind::channel_scale_backward:
                return {{{"dy", n, Type::floating}, {"x", n}, {"factors", e.batch * e.width}},
                        {{"dx", n}, {"dfactors", e.batch * e.width}}};
        }
        return {};
    }
    SlotRules operator()(const ColumnSum& s) const {
        return {{{"x", s.rows * s.columns, Type::floating}}, {{"y", s.columns, Type::floating}}};
    }
    SlotRules operator()(const PositionSum& s) const {
        return {{{"dy", s.seq * s.batch * s.width, Type::floating}},
                {{"dtable", s.positions * s.width, Type::floating}}};
    }
    SlotRules operator()(const Embedding& e) const {
        const Slot ids{"ids", e.tokens, Type::int32};
        const Slot table{"table", e.vocab * e.hidden, Type::floating};
        const Slot y{"y", e.tokens * e.hidden, Type::floating};
        if (e.pass == Pass::forward) return {{ids, table}, {y}};
        return {{y, ids}, {table}};
    }
    SlotRules operator()(const FirstToken& f) const {
        const Slot x{"x", f.batch * f.seq * f.width, Type::floating};
        const Slot y{"y", f.batch * f.width, Type::floating};
        if (f.pass == Pass::forward) return {{x}, {y}};
        return {{y}, {x}};
    }
    SlotRules operator()(const SoftmaxLoss& l) const {
        using Part = SoftmaxLoss::Part;
        const Slot logits{"logits", l.rows * l.classes, Type::floating};
        const Slot labels{"labels", l.rows, Type::int32};
        const Slot loss{"loss", 1, Type::fp32};
        const Slot lse{"lse", l.rows, Type::fp32};
        const Slot largest{"max", l.rows, Type::fp32};
        const Slot sums{"sums", 2 * l.rows, Type::fp32};
        if (l.pass != Pass::forward)
            return {{logits, labels, lse, {"loss_scale", 1, Type::fp32, optional}}, {{"dlogits", l.rows * l.classes}}};
        switch (l.part) {
            case Part::whole: return {{logits, labels}, {loss, lse}};
            case Part::row_max: return {{logits}, {largest}};
            case Part::row_sums: return {{logits, labels, largest}, {sums}};
            case Part::finish: return {{largest, sums}, {loss, lse}};
        }
        return {};
    }
    SlotRules operator()(const Pool& p) const {
        const Slot x{"x", p.n * p.channels * p.height * p.width, Type::floating};
        const Slot y{"y", p.n * p.channels * p.out_height() * p.out_width(), Type::floating};
        SlotRules rules;
        rules.in = {p.pass == Pass::forward ? x : y};
        rules.out = {p.pass == Pass::forward ? y : x};
        if (p.kind == model::Pool::Kind::max)
            (p.pass == Pass::forward ? rules.out : rules.in).push_back({"indices", y.elements, Type::int32});
        return rules;
    }
    SlotRules operator()(const Dropout& d) const {
        const Slot mask{"mask", d.count, Type::uint8};
        if (d.pass == Pass::forward) return {{{"x", d.count, Type::floating}}, {{"y", d.count}, mask}};
        return {{{"dy", d.count, Type::floating}, mask}, {{"dx", d.count}}};
    }
    SlotRules operator()(const OptimizerUpdate& u) const {
        SlotRules rules;
        for (std::int64_t i = 0; i < u.parameters && i < static_cast<std::int64_t>(op.in.size()); ++i) {
            const std::int64_t n = graph.tensor(op.in[static_cast<std::size_t>(i)]).elements();
            rules.in.push_back({"gradient", n, Type::floating});
            rules.out.push_back({"parameter", n, Type::floating});
            rules.out.push_back({"state1", n, Type::fp32});
            if (u.kind == plan::Optimizer::adam) rules.out.push_back({"state2", n, Type::fp32});
            if (u.has_master) rules.out.push_back({"master", n, Type::fp32});
        }
        if (u.has_loss_scale)
            for (const char* name : {"found_inf", "loss_scale"}) rules.in.push_back({name, 1, Type::fp32});
        return rules;
    }
    SlotRules operator()(const Reorder& r) const {
        return {{{"x", r.count, Type::floating}}, {{"y", r.count, Type::floating}}};
    }
    SlotRules operator()(const Cast& c) const {
        return {{{"x", c.count, Type::floating}}, {{"y", c.count, Type::floating}}};
    }
    SlotRules operator()(const Fill& f) const { return {{}, {{"y", f.count, Type::any}}}; }
    SlotRules operator()(const FoundInf&) const {
        SlotRules rules;
        for (const TensorId id : op.in) rules.in.push_back({"gradient", graph.tensor(id).elements(), Type::floating});
        rules.out = {{"found_inf", 1, Type::fp32}};
        return rules;
    }
    SlotRules operator()(const Slice& s) const {
        const Slot whole{"x", s.rows * s.width, SlotType::floating};
        const Slot part{"y", s.rows * s.kept, SlotType::floating};
        if (s.pass == Pass::forward) return {{whole}, {part}};
        return {{part}, {whole}};
    }
    SlotRules operator()(const BlockTranspose& t) const {
        const std::int64_t n = t.rows * t.blocks * t.width;
        return {{{"x", n, Type::any}}, {{"y", n}}};
    }
    SlotRules operator()(const Route& r) const {
        return {{},
                {{"token_rows", r.seq * r.batch * r.top_k, Type::int32},
                 {"row_tokens", r.experts * r.rows_per_expert, Type::int32}}};
    }
    SlotRules operator()(const Dispatch& d) const {
        const Slot x{"x", d.tokens * d.width, Type::floating};
        const Slot y{"y", d.rows * d.width, Type::floating};
        if (d.pass == Pass::forward) return {{x, {"row_tokens", d.rows, Type::int32}}, {{"y", y.elements}}};
        return {{y, {"token_rows", d.tokens * d.top_k, Type::int32}}, {{"dx", x.elements}}};
    }
    SlotRules operator()(const Combine& c) const {
        const std::int64_t rows = c.experts * c.rows_per_expert;
        const Slot logits{"logits", c.tokens * c.experts};
        const Slot token_rows{"token_rows", c.tokens * c.top_k, Type::int32};
        if (c.pass == Pass::forward)
            return {{{"x", rows * c.width, Type::floating}, logits, token_rows}, {{"y", c.tokens * c.width}}};
        return {{{"dy", c.tokens * c.width, Type::floating},
                 {"x", rows * c.width},
                 logits,
                 token_rows,
                 {"row_tokens", rows, Type::int32}},
                {{"dx", rows * c.width}, {"dlogits", c.tokens * c.experts}}};
    }
    SlotRules operator()(const UpdateLossScale&) const {
        return {{{"found_inf", 1, Type::fp32}},
                {{"loss_scale", 1, Type::fp32}, {"growth_tracker", 1, Type::fp32, optional}}};
    }

    SlotRules operator()(const Compute& compute) const { return std::visit(*this, compute); }
    SlotRules operator()(const Collective& c) const {
        const std::int64_t all = c.count * graph.communicators[c.communicator.index()].size;
        const bool is_whole_in = c.kind == CollectiveKind::reduce_scatter || c.kind == CollectiveKind::all_to_all;
        const bool is_whole_out = c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::all_to_all;
        return {{{"buffer", is_whole_in ? all : c.count, Type::any}}, {{"result", is_whole_out ? all : c.count}}};
    }
    SlotRules operator()(const Copy& c) const {
        if (c.kind != Copy::Kind::input) return {{{"x", c.count, Type::any}}, {{"y", c.count, Type::any}}};
        SlotRules rules;
        for (const Write& write : op.out)
            rules.out.push_back({"batch", graph.tensor(write.tensor).elements(), Type::any});
        return rules;
    }
    SlotRules operator()(const P2PGroup&) const { return {}; }
    SlotRules operator()(const HostSync&) const { return {}; }
    SlotRules operator()(const StreamWait&) const { return {}; }
};

}  // namespace

SlotRules slot_rules(const StepGraph& graph, const Op& op) { return std::visit(RulesOf{graph, op}, op.kind); }

}  // namespace lockstep::step
