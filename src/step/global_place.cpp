#include "step/global_place.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {
namespace {

bool is_whole(const std::vector<IndexRun>& runs, std::int64_t extent) {
    return runs.size() == 1 && runs[0].local == 0 && runs[0].global == 0 && runs[0].count == extent;
}

}  // namespace

std::vector<std::vector<IndexRun>> whole_runs(const Shape& shape) {
    std::vector<std::vector<IndexRun>> runs;
    for (const std::int64_t extent : shape.extents) runs.push_back({{0, 0, extent}});
    return runs;
}

std::vector<std::int64_t> global_indices(const std::vector<IndexRun>& runs) {
    std::vector<std::int64_t> indices;
    for (const IndexRun& run : runs)
        for (std::int64_t i = 0; i < run.count; ++i) indices.push_back(run.global + i);
    return indices;
}

Place place_of(const Tensor& tensor, const plan::Mesh& mesh, int rank) {
    return {tensor.shape, global_shape(tensor, mesh), shard_runs(tensor, mesh, rank)};
}

void place_ring_keys(const StepGraph& graph, int rank, const OpInstance& instance, const Attention& attention,
                     Place& keys) {
    const std::size_t qkv = attention.pass == Pass::forward ? 0 : 1;
    if (attention.ring_size != graph.mesh.cp || instance.op->in.size() < qkv + 2)
        throw LogicError(fmt::format("op {} goes round a ring of {} ranks, but cp has {}", instance.op->name,
                                     attention.ring_size, graph.mesh.cp));
    plan::Coordinates from = graph.mesh.coordinates(rank);
    from.cp = (from.cp - attention.ring_step % graph.mesh.cp + graph.mesh.cp) % graph.mesh.cp;
    const Place there = place_of(graph.tensor(instance.op->in[qkv]), graph.mesh, graph.mesh.rank(from));
    keys.runs.at(0) = there.runs.at(0);
    keys.global.extents.at(0) = there.global[0];
}

std::vector<std::int64_t> positions_of_rows(const Place& o, std::int64_t rows, std::int64_t batch) {
    if (batch < 1 || o.shape.rank() < 1 || o.runs.size() != o.shape.rank() || o.shape[0] * batch != rows)
        throw LogicError(
            fmt::format("a part of shape {} does not hold {} rows, {} of each position (the sequence comes first)",
                        to_string(o.shape), rows, batch));
    return global_indices(o.runs[0]);
}

GlobalPlace::GlobalPlace(const Place& o) {
    if (o.global.rank() != o.shape.rank() || o.runs.size() != o.shape.rank())
        throw LogicError(fmt::format("a part of shape {} has no place in a whole tensor", to_string(o.shape)));
    elements_ = o.global.elements();
    for (std::size_t d = o.shape.rank(); d-- > 0;) {
        Dimension outer{o.shape[d], o.global[d], o.runs[d]};
        if (!dimensions_.empty() && is_whole(dimensions_.back().runs, dimensions_.back().global)) {
            const std::int64_t inner = dimensions_.back().global;
            for (IndexRun& run : outer.runs) run = {run.local * inner, run.global * inner, run.count * inner};
            outer.local *= inner;
            outer.global *= inner;
            dimensions_.pop_back();
        }
        dimensions_.push_back(std::move(outer));
    }
    if (dimensions_.empty()) dimensions_.push_back({1, 1, {{0, 0, 1}}});
    std::reverse(dimensions_.begin(), dimensions_.end());
}

std::int64_t GlobalPlace::place(const Dimension& dimension, std::int64_t index) {
    for (const IndexRun& run : dimension.runs)
        if (index >= run.local && index < run.local + run.count) return run.global + index - run.local;
    throw LogicError(fmt::format("index {} is outside a rank's part of {}", index, dimension.local));
}

std::int64_t GlobalPlace::row_start(std::int64_t row) const {
    std::int64_t start = 0, stride = dimensions_.back().global;
    for (std::size_t d = dimensions_.size() - 1; d-- > 0;) {
        const Dimension& dimension = dimensions_[d];
        start += place(dimension, row % dimension.local) * stride;
        row /= dimension.local;
        stride *= dimension.global;
    }
    return start;
}

std::int64_t GlobalPlace::operator()(std::int64_t local) const {
    const Dimension& inner = dimensions_.back();
    return row_start(local / inner.local) + place(inner, local % inner.local);
}

}  // namespace lockstep::step
