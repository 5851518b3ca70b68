#include "cpu/global_place.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

bool is_whole(const std::vector<step::IndexRun>& runs, std::int64_t extent) {
    return runs.size() == 1 && runs[0].local == 0 && runs[0].global == 0 && runs[0].count == extent;
}

}  // namespace

std::vector<std::vector<step::IndexRun>> whole_runs(const Shape& shape) {
    std::vector<std::vector<step::IndexRun>> runs;
    for (const std::int64_t extent : shape.extents) runs.push_back({{0, 0, extent}});
    return runs;
}

std::vector<std::int64_t> global_indices(const std::vector<step::IndexRun>& runs) {
    std::vector<std::int64_t> indices;
    for (const step::IndexRun& run : runs)
        for (std::int64_t i = 0; i < run.count; ++i) indices.push_back(run.global + i);
    return indices;
}

Operand place_operand(const step::Tensor& tensor, const plan::Mesh& mesh, int rank) {
    Operand o;
    o.dtype = tensor.dtype;
    o.shape = tensor.shape;
    o.global = step::global_shape(tensor, mesh);
    o.runs = step::shard_runs(tensor, mesh, rank);
    return o;
}

std::vector<std::int64_t> positions_of_rows(const Operand& o, std::int64_t rows, std::int64_t batch) {
    if (batch < 1 || o.shape.rank() < 1 || o.runs.size() != o.shape.rank() || o.shape[0] * batch != rows)
        throw LogicError(
            fmt::format("an operand of shape {} does not hold {} rows, {} of each position (the sequence comes first)",
                        to_string(o.shape), rows, batch));
    return global_indices(o.runs[0]);
}

GlobalPlace::GlobalPlace(const Operand& o) {
    if (o.global.rank() != o.shape.rank() || o.runs.size() != o.shape.rank())
        throw LogicError(fmt::format("an operand of shape {} has no place in a whole tensor", to_string(o.shape)));
    elements_ = o.global.elements();
    for (std::size_t d = o.shape.rank(); d-- > 0;) {
        Dimension outer{o.shape[d], o.global[d], o.runs[d]};
        if (!dimensions_.empty() && is_whole(dimensions_.back().runs, dimensions_.back().global)) {
            const std::int64_t inner = dimensions_.back().global;
            for (step::IndexRun& run : outer.runs) run = {run.local * inner, run.global * inner, run.count * inner};
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
    for (const step::IndexRun& run : dimension.runs)
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

}  // namespace lockstep::cpu
