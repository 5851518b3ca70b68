#include "step/attention_ops.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

using plan::Axis;

namespace {

/// Attention of this rank's queries to this rank's keys; `parts`: ranks that share the heads of a tp rank.
Attention attention_of(const LayerStep& at, Pass pass, int parts) {
    const auto& t = std::get<model::Attention>(at.layer.kind);
    const Assembly& a = at.a;
    const std::int64_t split = (at.split().input == plan::Spread::features ? std::int64_t{a.mesh().tp} : 1) * parts;
    Attention op;
    op.batch = a.batch();
    op.seq = at.layer.input[0];
    op.heads = t.heads / split;
    op.kv_heads = t.kv_heads / split;
    op.head_dim = t.head_dim;
    op.causal = t.causal;
    op.dropout = t.dropout;
    op.dropout_stream = random_stream(at.layer.name);
    op.algorithm = a.input.framework.attention;
    op.pass = pass;
    op.memory = t.memory;
    op.relative = t.relative;
    return op;
}

std::int64_t qkv_width(const Attention& op) { return (op.heads + 2 * op.kv_heads) * op.head_dim; }
std::int64_t context_width(const Attention& op) { return op.heads * op.head_dim; }

/// What the backward pass needs besides qkv and context.
std::vector<TensorId> add_saved(const LayerStep& at, const Attention& op) {
    if (op.algorithm == plan::AttentionAlgorithm::flash)
        return {at.add_local("log_sum_exp", {op.batch, op.heads, op.seq}, DType::fp32)};
    const Shape scores{op.batch, op.heads, op.seq, op.seq + op.memory};
    std::vector<TensorId> saved{at.add_local("probabilities", scores, at.a.activation())};
    if (op.dropout == 0) return saved;
    saved.push_back(at.add_local("mask", scores, DType::uint8));
    saved.push_back(at.add_local("dropped", scores, at.a.activation()));
    return saved;
}

std::vector<Write> results(TensorId first, const std::vector<TensorId>& others) {
    std::vector<Write> out{{first, Access::overwrite}};
    for (const TensorId id : others) out.push_back({id, Access::overwrite});
    return out;
}

// ---- all-to-all: sequence for heads

/// A tensor [rows of the rank, width] of the op's tokens.
TensorId add_tokens(const LayerStep& at, const std::string& what, std::int64_t seq, std::int64_t width,
                    bool has_heads_of_cp) {
    const Assembly& a = at.a;
    Shape shape{seq, a.batch(), width};
    const TensorId id = at.add_local(what, std::move(shape), a.activation());
    Tensor& tensor = at.a.graph.graph().tensors[id.index()];
    if (!has_heads_of_cp) tensor.shards.push_back({0, Axis::cp});
    for (const Axis axis : {Axis::replica, Axis::dp, Axis::ep})
        if (a.mesh().extent(axis) > 1) tensor.shards.push_back({1, axis});
    if (a.mesh().tp > 1) tensor.shards.push_back({2, Axis::tp});
    if (has_heads_of_cp) tensor.shards.push_back({2, Axis::cp});
    return id;
}

/// [seq / cp, batch, width] of all heads of the tp rank -> [seq, batch, width / cp] of some.
TensorId to_heads(const LayerStep& at, const std::string& what, TensorId x) {
    const int cp = at.a.mesh().cp;
    const Tensor tokens = at.a.graph.tensor(x);
    const std::int64_t width = tokens.shape.back();
    const TensorId packed = at.add_local(what + ".packed", {tokens.elements()}, tokens.dtype);
    at.emit(what + ".pack", Compute{BlockTranspose{rows_of(tokens), cp, width / cp}}, {x},
            {{packed, Access::overwrite}});
    const TensorId heads = add_tokens(at, what + ".heads", tokens.shape[0] * cp, width / cp, true);
    at.exchange(what, Axis::cp, packed, heads);
    return heads;
}

/// The other way round, into `tokens`.
void to_tokens(const LayerStep& at, const std::string& what, TensorId heads, TensorId tokens) {
    const int cp = at.a.mesh().cp;
    const Tensor result = at.a.graph.tensor(tokens);
    const TensorId received = at.add_local(what + ".received", {result.elements()}, result.dtype);
    at.exchange(what, Axis::cp, heads, received);
    at.emit(what + ".unpack", Compute{BlockTranspose{cp, rows_of(result), result.shape.back() / cp}}, {received},
            {{tokens, Access::overwrite}});
}

/// saved: qkv and context of this rank's heads, then what attention saves.
void add_exchanged_forward(const LayerStep& at) {
    const Attention op = attention_of(at, Pass::forward, at.a.mesh().cp);
    const TensorId qkv = to_heads(at, "qkv", at.mine.input);
    const TensorId context = add_tokens(at, "context", op.seq, context_width(op), true);
    const std::vector<TensorId> saved = add_saved(at, op);
    at.emit("forward", Compute{op}, {qkv}, results(context, saved));
    at.mine.output = at.a.add_output(at.layer.name, at.id);
    to_tokens(at, "output", context, at.mine.output);
    at.mine.saved = {qkv, context};
    at.mine.saved.insert(at.mine.saved.end(), saved.begin(), saved.end());
}

TensorId add_exchanged_backward(const LayerStep& at) {
    const Attention op = attention_of(at, Pass::backward_data, at.a.mesh().cp);
    const TensorId dcontext = to_heads(at, "gradient", at.mine.gradient);
    const TensorId dqkv = add_tokens(at, "dqkv", op.seq, qkv_width(op), true);
    std::vector<TensorId> in{dcontext};
    in.insert(in.end(), at.mine.saved.begin(), at.mine.saved.end());
    at.emit("backward_data", Compute{op}, std::move(in), {{dqkv, Access::overwrite}});
    const TensorId dx = at.a.add_like(at.layer.name + ".input_gradient", at.mine.input);
    to_tokens(at, "input_gradient", dqkv, dx);
    return dx;
}

// ---- ring: keys and values go round

/// Keys and values inside qkv: the last two of each group of heads.
Slice keys_and_values(const Attention& op, Pass pass) {
    const std::int64_t queries = op.heads / op.kv_heads * op.head_dim;
    return {.rows = op.seq * op.batch * op.kv_heads,
            .width = queries + 2 * op.head_dim,
            .first = queries,
            .kept = 2 * op.head_dim,
            .pass = pass};
}

struct Ring {
    const LayerStep& at;
    Attention op;

    Ring(const LayerStep& step, Pass pass) : at(step), op(attention_of(step, pass, 1)) {
        op.part = Attention::Part::ring;
        op.ring_size = at.a.mesh().cp;
        op.seq /= op.ring_size;
        op.algorithm = plan::AttentionAlgorithm::flash;
    }
    TensorId add_kv(const std::string& what) const {
        return at.add_local(what, {op.seq, op.batch, op.kv_heads, 2, op.head_dim}, at.a.activation());
    }
    TensorId own_kv() const {
        const TensorId kv = add_kv("kv0");
        at.emit("take_kv", Compute{keys_and_values(op, Pass::forward)}, {at.mine.input}, {{kv, Access::overwrite}});
        return kv;
    }
    /// Sends a buffer to the next rank and receives the same of the rank before.
    TensorId pass_on(const char* lane_name, const std::string& what, TensorId sent, TensorId received) const {
        const CommunicationLane lane = at.a.lane(lane_name, {Axis::cp});
        P2PGroup group{lane.communicator, {}, {}};
        group.sends.push_back({{Axis::cp, 1, true}, sent, 0, 0});
        group.receives.push_back({{Axis::cp, -1, true}, received, 0, 0});
        Op& op_added = at.a.graph.add_op_on(lane.stream, fmt::format("{}.{}", at.layer.name, what), group, {sent},
                                            {{received, Access::overwrite}});
        op_added.layer = at.id;
        return received;
    }
};

void add_ring_forward(const LayerStep& at) {
    Ring ring(at, Pass::forward);
    at.mine.output = at.a.add_output(at.layer.name, at.id);
    at.mine.saved = {at.add_local("log_sum_exp", {ring.op.batch, ring.op.heads, ring.op.seq}, DType::fp32)};
    TensorId kv = ring.own_kv();
    for (int step = 0; step < ring.op.ring_size; ++step) {
        TensorId next;
        if (step + 1 < ring.op.ring_size)
            next =
                ring.pass_on("cp", fmt::format("pass_kv{}", step + 1), kv, ring.add_kv(fmt::format("kv{}", step + 1)));
        ring.op.ring_step = step;
        const Access access = step == 0 ? Access::overwrite : Access::update;
        at.emit(fmt::format("forward{}", step), Compute{ring.op}, {at.mine.input, kv},
                {{at.mine.output, access}, {at.mine.saved[0], access}});
        kv = next;
    }
}

/// The gradient of keys and values travels behind them, and comes home with the last step.
TensorId add_ring_backward(const LayerStep& at) {
    Ring ring(at, Pass::backward_data);
    const TensorId dx = at.a.add_like(at.layer.name + ".input_gradient", at.mine.input);
    TensorId kv = ring.own_kv();
    TensorId dkv = ring.add_kv("dkv0");
    for (int step = 0; step < ring.op.ring_size; ++step) {
        TensorId next;
        if (step + 1 < ring.op.ring_size)
            next = ring.pass_on("cp", fmt::format("pass_kv{}_backward", step + 1), kv,
                                ring.add_kv(fmt::format("kv{}_backward", step + 1)));
        ring.op.ring_step = step;
        const Access access = step == 0 ? Access::overwrite : Access::update;
        at.emit(fmt::format("backward_data{}", step), Compute{ring.op},
                {at.mine.gradient, at.mine.input, kv, at.mine.output, at.mine.saved[0]}, {{dx, access}, {dkv, access}});
        dkv = ring.pass_on("cp.gradient", fmt::format("pass_dkv{}", step + 1), dkv,
                           ring.add_kv(fmt::format("dkv{}", step + 1)));
        kv = next;
    }
    at.emit("add_dkv", Compute{keys_and_values(ring.op, Pass::backward_data)}, {dkv}, {{dx, Access::update}});
    return dx;
}

}  // namespace

void add_attention_forward(const LayerStep& at) {
    if (at.a.mesh().cp > 1 && at.a.split().context == plan::ContextAlgorithm::ring) return add_ring_forward(at);
    if (at.a.mesh().cp > 1) return add_exchanged_forward(at);
    const Attention op = attention_of(at, Pass::forward, 1);
    at.mine.output = at.a.add_output(at.layer.name, at.id);
    at.mine.saved = add_saved(at, op);
    std::vector<TensorId> in{at.mine.input};
    if (op.memory > 0) in.push_back(at.a.source(at.chunk, at.id, 1));
    at.emit("forward", Compute{op}, std::move(in), results(at.mine.output, at.mine.saved));
}

AttentionGradients add_attention_backward(const LayerStep& at) {
    if (at.a.mesh().cp > 1 && at.a.split().context == plan::ContextAlgorithm::ring) return {add_ring_backward(at), {}};
    if (at.a.mesh().cp > 1) return {add_exchanged_backward(at), {}};
    const Attention op = attention_of(at, Pass::backward_data, 1);
    AttentionGradients gradients{at.a.add_like(at.layer.name + ".input_gradient", at.mine.input), {}};
    std::vector<TensorId> in{at.mine.gradient, at.mine.input};
    std::vector<Write> out{{gradients.qkv, Access::overwrite}};
    if (op.memory > 0) {
        const TensorId memory = at.a.source(at.chunk, at.id, 1);
        gradients.memory = at.a.add_like(at.layer.name + ".memory_gradient", memory);
        in.push_back(memory);
        out.push_back({gradients.memory, Access::overwrite});
    }
    in.push_back(at.mine.output);
    in.insert(in.end(), at.mine.saved.begin(), at.mine.saved.end());
    at.emit("backward_data", Compute{op}, std::move(in), std::move(out));
    return gradients;
}

}  // namespace lockstep::step
