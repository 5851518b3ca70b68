#include "step/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::step {

std::string_view to_string(Role role) {
    switch (role) {
        case Role::input: return "input";
        case Role::parameter: return "parameter";
        case Role::gradient: return "gradient";
        case Role::main_gradient: return "main_gradient";
        case Role::master_weight: return "master_weight";
        case Role::optimizer_state: return "optimizer_state";
        case Role::buffer: return "buffer";
        case Role::activation: return "activation";
        case Role::communication: return "communication";
        case Role::scalar: return "scalar";
        case Role::workspace: return "workspace";
    }
    return "?";
}

namespace {

std::size_t checked_dimension(const Tensor& tensor, const Shard& shard) {
    if (shard.dimension < 0 || static_cast<std::size_t>(shard.dimension) >= tensor.shape.rank())
        throw LogicError(fmt::format("tensor {} of shape {} is sharded along dimension {}", tensor.name,
                                     to_string(tensor.shape), shard.dimension));
    return static_cast<std::size_t>(shard.dimension);
}

}  // namespace

Shape global_shape(const Tensor& tensor, const plan::Mesh& mesh) {
    Shape global = tensor.shape;
    for (const Shard& shard : tensor.shards)
        global.extents[checked_dimension(tensor, shard)] *= mesh.extent(shard.axis);
    return global;
}

namespace {

/// The indices from `begin` on of those that runs list one behind the other.
void take(const std::vector<IndexRun>& from, std::int64_t begin, std::int64_t count, std::vector<IndexRun>& to) {
    for (const IndexRun& run : from) {
        const std::int64_t first = std::max(begin, run.local);
        const std::int64_t last = std::min(begin + count, run.local + run.count);
        if (first >= last) continue;
        const std::int64_t local = to.empty() ? 0 : to.back().local + to.back().count;
        const std::int64_t global = run.global + first - run.local;
        if (!to.empty() && to.back().global + to.back().count == global)
            to.back().count += last - first;
        else
            to.push_back({local, global, last - first});
    }
}

std::vector<IndexRun> part_of(const std::vector<IndexRun>& whole, const Shard& shard, std::int64_t ranks,
                              std::int64_t mine, const Tensor& tensor) {
    const std::int64_t extent = whole.back().local + whole.back().count;
    std::vector<IndexRun> part;
    if (shard.order == Shard::Order::contiguous || ranks == 1) {
        take(whole, mine * (extent / ranks), extent / ranks, part);
        return part;
    }
    if (extent % (2 * ranks) != 0)
        throw LogicError(fmt::format("tensor {} of shape {} is split in zigzag along dimension {} of {} indices",
                                     tensor.name, to_string(tensor.shape), shard.dimension, extent));
    const std::int64_t half = extent / (2 * ranks);
    take(whole, mine * half, half, part);
    take(whole, (2 * ranks - 1 - mine) * half, half, part);
    return part;
}

}  // namespace

std::vector<std::vector<IndexRun>> shard_runs(const Tensor& tensor, const plan::Mesh& mesh, int rank) {
    const plan::Coordinates coordinates = mesh.coordinates(rank);
    const Shape global = global_shape(tensor, mesh);
    std::vector<std::vector<IndexRun>> runs(global.rank());
    for (std::size_t d = 0; d < runs.size(); ++d) runs[d] = {{0, 0, global[d]}};
    for (const Shard& shard : tensor.shards) {
        std::vector<IndexRun>& mine = runs[checked_dimension(tensor, shard)];
        mine = part_of(mine, shard, mesh.extent(shard.axis), coordinates[shard.axis], tensor);
    }
    return runs;
}

}  // namespace lockstep::step
