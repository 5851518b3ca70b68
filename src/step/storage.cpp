#include "step/storage.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

const Tensor& storage_of(const StepGraph& graph, TensorId id) {
    const Tensor& tensor = graph.tensor(id);
    return tensor.view ? graph.tensor(tensor.view->of) : tensor;
}

std::int64_t byte_offset(const StepGraph& graph, const MemoryPlan& plan, int rank, TensorId id,
                         std::int32_t micro_batch) {
    const Tensor& tensor = graph.tensor(id);
    std::int64_t offset = plan.offset[id.index()];
    if (offset < 0) throw LogicError(fmt::format("tensor {} has no memory on this rank", tensor.name));
    if (tensor.view && tensor.view->ring) {
        const RingPart& ring = *tensor.view->ring;
        const std::int64_t parts = graph.mesh.extent(ring.axis);
        const std::int64_t part = graph.mesh.coordinates(rank)[ring.axis] + ring.offset % parts + parts;
        offset += part % parts * static_cast<std::int64_t>(tensor.bytes().value);
    }
    const Tensor& storage = storage_of(graph, id);
    return offset + storage.slot_of(micro_batch) * storage.slot_stride();
}

bool moves_with_micro_batch(const StepGraph& graph, const Op& op) {
    bool moves = false;
    for_each_operand(OpInstance{&op}, [&](TensorId id, std::int32_t, const Write*) {
        moves = moves || storage_of(graph, id).slots > 1;
    });
    return moves;
}

}  // namespace lockstep::step
