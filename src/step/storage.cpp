#include "step/storage.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

TensorId storage_id(const StepGraph& graph, TensorId id) {
    const Tensor& tensor = graph.tensor(id);
    return tensor.view ? tensor.view->of : id;
}

const Tensor& storage_of(const StepGraph& graph, TensorId id) { return graph.tensor(storage_id(graph, id)); }

std::int64_t byte_offset(const StepGraph& graph, const MemoryPlan& plan, int rank, TensorId id,
                         std::int32_t micro_batch) {
    const Tensor& tensor = graph.tensor(id);
    const std::int32_t slot = storage_of(graph, id).slot_of(micro_batch);
    std::int64_t offset = plan.holds(id) ? plan.offset[id.index()][static_cast<std::size_t>(slot)] : -1;
    if (offset < 0) throw LogicError(fmt::format("tensor {} has no memory on this rank", tensor.name));
    if (tensor.view && tensor.view->ring) {
        const RingPart& ring = *tensor.view->ring;
        const std::int64_t parts = graph.mesh.extent(ring.axis);
        const std::int64_t part = graph.mesh.coordinates(rank)[ring.axis] + ring.offset % parts + parts;
        offset += part % parts * static_cast<std::int64_t>(tensor.bytes().value);
    }
    return offset;
}

std::int64_t byte_offset(const StepGraph& graph, const MemoryPlan& plan, int rank, const OpInstance& op, TensorId id,
                         std::int32_t micro_batch) {
    return byte_offset(graph, plan, rank, id, micro_batch) +
           plan.distance(op.number, storage_id(graph, id), micro_batch);
}

bool uses_copies(const StepGraph& graph, const Op& op) {
    bool uses = false;
    for_each_operand(OpInstance{&op},
                     [&](TensorId id, std::int32_t, const Write*) { uses = uses || storage_of(graph, id).slots > 1; });
    return uses;
}

bool moves_with_micro_batch(const StepGraph& graph, const MemoryPlan& plan, const OpInstance& op) {
    return uses_copies(graph, *op.op) || plan.moves_with_micro_batch(op.number);
}

}  // namespace lockstep::step
