#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"

namespace lockstep::step {

namespace {

void require_tensor(const StepGraph& graph, const Tensor& tensor, TensorId id, const char* what) {
    if (id.is_valid() && id.index() < graph.tensors.size()) return;
    throw InputError(fmt::format("tensor {} names {} {} (there are {}); give it one that exists", tensor.name, what,
                                 id.value, graph.tensors.size()));
}

/// The elements that a view takes up on some rank: those of all parts of a ring.
std::int64_t reach(const plan::Mesh& mesh, const Tensor& view) {
    return view.elements() * (view.view->ring ? mesh.extent(view.view->ring->axis) : 1);
}

void check_view(const StepGraph& graph, const Tensor& tensor) {
    require_tensor(graph, tensor, tensor.view->of, "the storage");
    const Tensor& storage = graph.tensor(tensor.view->of);
    if (storage.view)
        throw InputError(fmt::format("tensor {} is a view of {}, which is a view itself; name the storage", tensor.name,
                                     storage.name));
    if (storage.dtype != tensor.dtype)
        throw InputError(fmt::format("tensor {} is a {} view of {}, which holds {}; use the same dtype", tensor.name,
                                     to_string(tensor.dtype), storage.name, to_string(storage.dtype)));
    const std::int64_t end = tensor.view->first_element + reach(graph.mesh, tensor);
    if (tensor.view->first_element < 0 || end > storage.elements())
        throw InputError(
            fmt::format("tensor {} is a view outside its storage (elements {} to {} of {}, which has {}); "
                        "move it inside",
                        tensor.name, tensor.view->first_element, end, storage.name, storage.elements()));
}

/// A ring's parts are apart from all other views of the storage, on every rank, but for views of all of it and other
/// parts of the same ring.
void check_rings(const StepGraph& graph) {
    std::vector<const Tensor*> ring_of(graph.tensors.size(), nullptr);
    for (const Tensor& tensor : graph.tensors)
        if (tensor.view && tensor.view->ring) ring_of[tensor.view->of.index()] = &tensor;
    for (const Tensor& tensor : graph.tensors) {
        if (!tensor.view) continue;
        const Tensor* ring = ring_of[tensor.view->of.index()];
        if (!ring || tensor.elements() == graph.tensor(tensor.view->of).elements()) continue;
        const bool is_part = tensor.view->ring && tensor.view->ring->axis == ring->view->ring->axis &&
                             tensor.elements() == ring->elements() &&
                             tensor.view->first_element == ring->view->first_element;
        if (!is_part)
            throw InputError(fmt::format(
                "tensors {} and {} are views of {}, of which one goes round with the ranks and the other is no part of "
                "the same ring (what they share depends on the rank); make both parts of one ring, or one of them all "
                "of the storage",
                ring->name, tensor.name, graph.tensor(tensor.view->of).name));
    }
}

void check_shards(const StepGraph& graph, const Tensor& tensor) {
    for (std::size_t i = 0; i < tensor.shards.size(); ++i) {
        const Shard& shard = tensor.shards[i];
        if (shard.dimension < 0 || static_cast<std::size_t>(shard.dimension) >= tensor.shape.rank())
            throw InputError(fmt::format("tensor {} of shape {} is split along dimension {}; it has none such",
                                         tensor.name, to_string(tensor.shape), shard.dimension));
        if (shard.order != Shard::Order::zigzag || graph.mesh.extent(shard.axis) == 1) continue;
        std::int64_t held = tensor.shape[static_cast<std::size_t>(shard.dimension)];
        for (std::size_t later = i + 1; later < tensor.shards.size(); ++later)
            if (tensor.shards[later].dimension == shard.dimension) held *= graph.mesh.extent(tensor.shards[later].axis);
        if (held % 2 != 0)
            throw InputError(
                fmt::format("tensor {} of shape {} is split in zigzag along dimension {} into parts of {}; a part must "
                            "be of even extent",
                            tensor.name, to_string(tensor.shape), shard.dimension, held));
    }
}

void check_part(const StepGraph& graph, const Tensor& tensor) {
    if (tensor.part_of.is_valid()) {
        require_tensor(graph, tensor, tensor.part_of, "the flat tensor");
        const Tensor& flat = graph.tensor(tensor.part_of);
        const std::int64_t elements = global_shape(tensor, graph.mesh).elements();
        const std::int64_t of_flat = global_shape(flat, graph.mesh).elements();
        if (elements != of_flat)
            throw InputError(fmt::format("tensor {} is a part of {} but all parts hold {} elements and that {}; pad it",
                                         tensor.name, flat.name, elements, of_flat));
    } else if (tensor.initial.kind == Initial::Kind::part_of) {
        throw InputError(
            fmt::format("tensor {} begins as part of no tensor; name the flat one it is a part of", tensor.name));
    }
}

}  // namespace

void check_tensors(const StepGraph& graph) {
    for (const Tensor& tensor : graph.tensors) {
        const auto& extents = tensor.shape.extents;
        if (std::any_of(extents.begin(), extents.end(), [](std::int64_t e) { return e < 1; }) || tensor.slots < 1)
            throw InputError(fmt::format("tensor {} of shape {} in {} copies is empty; every extent must be at least 1",
                                         tensor.name, to_string(tensor.shape), tensor.slots));
        check_shards(graph, tensor);
        if (tensor.view) check_view(graph, tensor);
        check_part(graph, tensor);
    }
    check_rings(graph);
}

}  // namespace lockstep::step
