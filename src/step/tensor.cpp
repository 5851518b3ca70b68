#include "step/tensor.hpp"

#include <fmt/format.h>

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

std::vector<std::vector<IndexRun>> shard_runs(const Tensor& tensor, const plan::Mesh& mesh, int rank) {
    const plan::Coordinates coordinates = mesh.coordinates(rank);
    std::vector<std::vector<IndexRun>> runs(tensor.shape.rank());
    for (std::size_t d = 0; d < runs.size(); ++d) {
        // Several axes may split one dimension: the first listed is the outermost, so the part's number is mixed radix.
        std::int64_t part = 0;
        const Shard* zigzag = nullptr;
        for (const Shard& shard : tensor.shards) {
            if (checked_dimension(tensor, shard) != d) continue;
            if (zigzag)
                throw LogicError(fmt::format("tensor {} is split on along dimension {} below a zigzag split",
                                             tensor.name, shard.dimension));
            if (shard.order == Shard::Order::zigzag && mesh.extent(shard.axis) > 1)
                zigzag = &shard;
            else
                part = part * mesh.extent(shard.axis) + coordinates[shard.axis];
        }
        const std::int64_t extent = tensor.shape[d];
        if (!zigzag) {
            runs[d] = {{0, part * extent, extent}};
            continue;
        }
        if (extent % 2 != 0)
            throw LogicError(fmt::format("tensor {} of shape {} is split in zigzag along dimension {} of odd extent",
                                         tensor.name, to_string(tensor.shape), d));
        const std::int64_t ranks = mesh.extent(zigzag->axis);
        const std::int64_t mine = coordinates[zigzag->axis];
        const std::int64_t begin = part * extent * ranks;
        const std::int64_t half = extent / 2;
        runs[d] = {{0, begin + mine * half, half}, {half, begin + (2 * ranks - 1 - mine) * half, half}};
    }
    return runs;
}

}  // namespace lockstep::step
