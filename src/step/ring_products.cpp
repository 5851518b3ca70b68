#include "step/ring_products.hpp"

#include <fmt/format.h>

namespace lockstep::step {

using plan::Axis;
using plan::Spread;
using plan::WeightSplit;

namespace {

/// Sends a part to the next tp rank and receives that of the rank before.
TensorId pass_on(const LayerStep& at, const std::string& what, TensorId sent) {
    const CommunicationLane lane = at.a.lane("tp.ring", {Axis::tp});
    const TensorId received = at.a.add_like(fmt::format("{}.{}", at.layer.name, what), sent);
    P2PGroup group{lane.communicator, {}, {}};
    group.sends.push_back({{Axis::tp, 1, true}, sent, 0, 0});
    group.receives.push_back({{Axis::tp, -1, true}, received, 0, 0});
    Op& op = at.a.graph.add_op_on(lane.stream, fmt::format("{}.{}.pass", at.layer.name, what), std::move(group), {sent},
                                  {{received, Access::overwrite}});
    op.layer = at.id;
    return received;
}

/// The rows of a whole tensor that belong to the rank `offset` places on.
TensorId piece(const LayerStep& at, TensorId whole, int offset) {
    Shape shape = at.a.graph.tensor(whole).shape;
    shape.extents.front() /= at.a.mesh().tp;
    const std::string name = fmt::format("{}[{:+}]", at.a.graph.tensor(whole).name, offset);
    const TensorId view = at.a.graph.add_view(name, whole, 0, std::move(shape), Layout::row_major);
    at.a.graph.graph().tensors[view.index()].view->ring = RingPart{Axis::tp, offset};
    return view;
}

/// The parts of all ranks, one after the other: this rank's own, that of the rank before it, and so on around the ring.
/// `use(j, part)` comes with the part of the rank j places before; the next is on its way meanwhile.
template <class F>
void go_round(const LayerStep& at, const std::string& what, TensorId own, F&& use) {
    const int ranks = at.a.mesh().tp;
    TensorId part = own;
    for (int j = 0; j < ranks; ++j) {
        const TensorId next = j + 1 < ranks ? pass_on(at, fmt::format("{}{}", what, j + 1), part) : TensorId{};
        use(j, part);
        part = next;
    }
}

/// Sums of pieces that end at the rank whose rows they are: `compute(j, offset, sum)` writes this rank's piece of the
/// rows of the rank at `offset`. Returns this rank's part of the sum, like `part`.
template <class F>
TensorId add_round(const LayerStep& at, const std::string& what, TensorId part, F&& compute) {
    const int ranks = at.a.mesh().tp;
    TensorId sum;
    for (int j = 0; j < ranks; ++j) {
        const TensorId received = j > 0 ? pass_on(at, fmt::format("{}_sum{}", what, j), sum) : TensorId{};
        const TensorId own = at.a.add_like(fmt::format("{}.{}_piece{}", at.layer.name, what, j), part);
        compute(j, -(1 + j), own);
        sum = own;
        if (!received.is_valid()) continue;
        sum = at.a.add_like(fmt::format("{}.{}_partial{}", at.layer.name, what, j), part);
        Elementwise add;
        add.count = at.a.graph.tensor(sum).elements();
        at.emit(fmt::format("{}_add{}", what, j), Compute{add}, {own, received}, {{sum, Access::overwrite}});
    }
    return sum;
}

Write piece_of(const Write& first, int j) { return j == 0 ? first : Write{first.tensor, Access::accumulate}; }

/// Columns: x goes round again for the weight's gradient, the input's gradient is summed on the way.
TensorId add_columns_backward(const LayerStep& at, bool needs_input_gradient,
                              const std::optional<Write>& contribution) {
    const TensorId dy = at.mine.gradient;
    TensorId dx;
    if (needs_input_gradient)
        dx = add_round(at, "backward_data", at.mine.source, [&](int j, int offset, TensorId sum) {
            const TensorId rows = piece(at, dy, offset);
            at.emit(fmt::format("backward_data{}", j), Compute{linear_backward_data(at.a, rows, at.working(0))},
                    {rows, at.working(0)}, {{sum, Access::overwrite}});
        });
    if (!contribution) return dx;
    go_round(at, "backward_x", at.mine.source, [&](int j, TensorId x) {
        const TensorId rows = piece(at, dy, -j);
        at.emit(fmt::format("backward_weights{}", j), Compute{linear_backward_weights(at.a, rows, x)}, {rows, x},
                {piece_of(*contribution, j)});
    });
    return dx;
}

/// Rows: dy goes round, each part gives some rows of the input's gradient and a piece of the weight's.
TensorId add_rows_backward(const LayerStep& at, bool needs_input_gradient, const std::optional<Write>& contribution) {
    const TensorId x = at.mine.input;
    const TensorId dx = needs_input_gradient ? at.a.add_like(at.layer.name + ".input_gradient", x) : TensorId{};
    go_round(at, "backward_dy", at.mine.gradient, [&](int j, TensorId dy) {
        if (dx.is_valid())
            at.emit(fmt::format("backward_data{}", j), Compute{linear_backward_data(at.a, dy, at.working(0))},
                    {dy, at.working(0)}, {{piece(at, dx, -j), Access::overwrite}});
        if (!contribution) return;
        const TensorId rows = piece(at, x, -j);
        at.emit(fmt::format("backward_weights{}", j), Compute{linear_backward_weights(at.a, dy, rows)}, {dy, rows},
                {piece_of(*contribution, j)});
    });
    return dx;
}

}  // namespace

bool is_ring_product(const LayerStep& at) {
    if (!at.a.split().async_tp || at.a.mesh().tp == 1) return false;
    if (at.split().weights == WeightSplit::rows) return at.split().output == Spread::sequence;
    const model::LayerId from = at.layer.inputs[0];
    return at.split().weights == WeightSplit::columns && from.is_valid() &&
           at.a.splits[from.index()].output == Spread::sequence;
}

void add_gathered_product(const LayerStep& at, const std::vector<TensorId>& bias) {
    at.mine.output = at.a.add_output(at.layer.name, at.id);
    go_round(at, "x", at.mine.source, [&](int j, TensorId x) {
        std::vector<TensorId> in{x, at.working(0)};
        in.insert(in.end(), bias.begin(), bias.end());
        at.emit(fmt::format("forward{}", j), Compute{linear_forward(at.a, x, at.working(0))}, std::move(in),
                {{piece(at, at.mine.output, -j), Access::overwrite}});
    });
}

TensorId add_scattered_product(const LayerStep& at) {
    const TensorId like = at.a.add_output(at.layer.name + ".part", at.id);
    return add_round(at, "forward", like, [&](int j, int offset, TensorId sum) {
        const TensorId rows = piece(at, at.mine.input, offset);
        at.emit(fmt::format("forward{}", j), Compute{linear_forward(at.a, rows, at.working(0))}, {rows, at.working(0)},
                {{sum, Access::overwrite}});
    });
}

TensorId add_ring_backward(const LayerStep& at, bool needs_input_gradient, std::optional<Write> contribution) {
    return at.split().weights == WeightSplit::columns ? add_columns_backward(at, needs_input_gradient, contribution)
                                                      : add_rows_backward(at, needs_input_gradient, contribution);
}

}  // namespace lockstep::step
