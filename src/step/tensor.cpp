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

std::vector<std::int64_t> shard_offset(const Tensor& tensor, const plan::Mesh& mesh, int rank) {
    // Several axes may split one dimension: the first listed is the outermost, so the index is mixed radix.
    const plan::Coordinates coordinates = mesh.coordinates(rank);
    std::vector<std::int64_t> part(tensor.shape.rank(), 0);
    for (const Shard& shard : tensor.shards) {
        std::int64_t& index = part[checked_dimension(tensor, shard)];
        index = index * mesh.extent(shard.axis) + coordinates[shard.axis];
    }
    for (std::size_t d = 0; d < part.size(); ++d) part[d] *= tensor.shape.extents[d];
    return part;
}

}  // namespace lockstep::step
