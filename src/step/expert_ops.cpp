#include "step/expert_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "step/routing.hpp"

namespace lockstep::step {

using plan::Axis;

namespace {

const model::Dispatch& dispatch_of(const LayerStep& at, model::LayerId id) {
    return std::get<model::Dispatch>(at.a.layer(id).kind);
}

/// [experts, rows, width] of this rank's tokens -> [experts / ep, ep rows, width] of its experts, from all ranks of ep.
TensorId to_experts(const LayerStep& at, const std::string& what, TensorId x, model::LayerId dispatch) {
    const std::int64_t ep = at.a.mesh().ep;
    if (ep == 1) return x;
    const Tensor sent = at.a.graph.tensor(x);
    const std::int64_t here = sent.shape[0] / ep;
    const TensorId result = at.a.add_expert_rows(at.layer.name + "." + what, dispatch, sent.shape[2]);
    const TensorId received =
        here == 1 ? result : at.add_local(what + ".received", {ep, here, sent.shape[1], sent.shape[2]}, sent.dtype);
    at.exchange(what, Axis::ep, x, received);
    if (here > 1)
        at.emit(what + ".unpack", Compute{BlockTranspose{ep, here, sent.shape[1] * sent.shape[2]}}, {received},
                {{result, Access::overwrite}});
    return result;
}

/// The other way round.
TensorId to_tokens(const LayerStep& at, const std::string& what, TensorId x) {
    const std::int64_t ep = at.a.mesh().ep;
    if (ep == 1) return x;
    const Tensor rows = at.a.graph.tensor(x);
    const std::int64_t here = rows.shape[0];
    const Shape shape{here * ep, rows.shape[1] / ep, rows.shape[2]};
    TensorId packed = x;
    if (here > 1) {
        packed = at.add_local(what + ".packed", shape, rows.dtype);
        at.emit(what + ".pack", Compute{BlockTranspose{here, ep, shape[1] * shape[2]}}, {x},
                {{packed, Access::overwrite}});
    }
    const TensorId received = at.add_local(what + ".returned", shape, rows.dtype);
    at.exchange(what, Axis::ep, packed, received);
    return received;
}

Combine combine_of(const LayerStep& at, TensorId tokens, Pass pass) {
    const model::Dispatch& dispatch = dispatch_of(at, at.a.layer(at.layer.inputs[0]).dispatch);
    const Tensor& y = at.a.graph.tensor(tokens);
    return {.tokens = rows_of(y),
            .experts = dispatch.experts,
            .top_k = dispatch.top_k,
            .rows_per_expert = at.a.graph.tensor(at.mine.saved[0]).shape[1],
            .width = y.shape.back(),
            .factor = 1.0 / at.a.mesh().ep,
            .pass = pass};
}

Dispatch rows_of_dispatch(const LayerStep& at, Pass pass) {
    const Shape rows = at.a.graph.tensor(at.mine.saved[1]).shape;
    const Tensor& x = at.a.graph.tensor(at.mine.input);
    return {.tokens = rows_of(x),
            .top_k = dispatch_of(at, at.id).top_k,
            .rows = rows.elements(),
            .width = x.shape.back(),
            .factor = static_cast<double>(at.a.mesh().ep),
            .pass = pass};
}

}  // namespace

std::int64_t rows_per_expert(const Assembly& a, const model::Dispatch& dispatch, TensorId token_rows) {
    const Tensor& tokens = a.graph.tensor(token_rows);
    const Routing routing{dispatch.experts, dispatch.top_k, dispatch.imbalance};
    std::int64_t most = 1;
    for (int cp = 0; cp < a.mesh().cp; ++cp) {
        plan::Coordinates rank;
        rank.cp = cp;
        const auto runs = shard_runs(tokens, a.mesh(), a.mesh().rank(rank));
        most = std::max(most, most_rows(routing, runs[0]) * tokens.shape[1]);
    }
    if (dispatch.capacity <= 0) return most;
    const double mean = static_cast<double>(tokens.elements()) / static_cast<double>(dispatch.experts);
    const double capacity = std::ceil(dispatch.capacity * mean * (1 - 1e-12));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(capacity, static_cast<double>(most))), 1, most);
}

void add_dispatch_forward(const LayerStep& at) {
    const model::Dispatch& dispatch = dispatch_of(at, at.id);
    const Tensor x = at.a.graph.tensor(at.mine.input);
    const TensorId token_rows = at.a.add_activation(at.layer.name + ".token_rows", {at.layer.input[0], dispatch.top_k},
                                                    DType::int32, Assembly::Kind::tokens, plan::Spread::whole);
    const std::int64_t rows = rows_per_expert(at.a, dispatch, token_rows);
    at.mine.saved = {token_rows, at.add_local("row_tokens", {dispatch.experts, rows}, DType::int32)};
    const Route route{.seq = x.shape[0],
                      .batch = x.shape[1],
                      .experts = dispatch.experts,
                      .top_k = dispatch.top_k,
                      .rows_per_expert = rows,
                      .imbalance = dispatch.imbalance,
                      .may_drop = dispatch.capacity > 0,
                      .stream = random_stream(at.layer.name)};
    at.emit("route", Compute{route}, {},
            {{at.mine.saved[0], Access::overwrite}, {at.mine.saved[1], Access::overwrite}});
    const TensorId sent = at.add_local("rows", {dispatch.experts, rows, x.shape.back()}, x.dtype);
    at.emit("forward", Compute{rows_of_dispatch(at, Pass::forward)}, {at.mine.input, at.mine.saved[1]},
            {{sent, Access::overwrite}});
    at.mine.output = to_experts(at, "forward", sent, at.id);
}

TensorId add_dispatch_backward(const LayerStep& at) {
    const TensorId rows = to_tokens(at, "backward", at.mine.gradient);
    const TensorId dx = at.a.add_like(at.layer.name + ".input_gradient", at.mine.input);
    at.emit("backward_data", Compute{rows_of_dispatch(at, Pass::backward_data)}, {rows, at.mine.saved[0]},
            {{dx, Access::overwrite}});
    return dx;
}

void add_combine_forward(const LayerStep& at) {
    const TensorId rows = to_tokens(at, "forward", at.mine.input);
    at.mine.saved = {rows};
    at.mine.output = at.a.add_output(at.layer.name, at.id);
    const model::LayerId dispatch = at.a.layer(at.layer.inputs[0]).dispatch;
    at.emit("forward", Compute{combine_of(at, at.mine.output, Pass::forward)},
            {rows, at.a.source(at.chunk, at.id, 1), at.a.layers[dispatch.index()].saved[0]},
            {{at.mine.output, Access::overwrite}});
}

CombineGradients add_combine_backward(const LayerStep& at) {
    const model::LayerId dispatch = at.a.layer(at.layer.inputs[0]).dispatch;
    const std::vector<TensorId>& routing = at.a.layers[dispatch.index()].saved;
    const TensorId logits = at.a.source(at.chunk, at.id, 1);
    const TensorId drows = at.a.add_like(at.layer.name + ".rows_gradient", at.mine.saved[0]);
    const TensorId dlogits = at.a.add_like(at.layer.name + ".logits_gradient", logits);
    at.emit("backward_data", Compute{combine_of(at, at.mine.output, Pass::backward_data)},
            {at.mine.gradient, at.mine.saved[0], logits, routing[0], routing[1]},
            {{drows, Access::overwrite}, {dlogits, Access::overwrite}});
    return {to_experts(at, "backward", drows, dispatch), dlogits};
}

}  // namespace lockstep::step
