#include "step/collective_step.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "step/op_cost.hpp"

namespace lockstep::step {

namespace {

/// Buffers in elements: what a rank sends and receives when `count` is NCCL's.
struct Sizes {
    std::int64_t count = 0, send = 0, receive = 0;
    bool is_in_place = false;
};

Sizes sizes_of(CollectiveKind kind, std::int64_t elements, int ranks) {
    const std::int64_t share = elements / ranks;
    const std::int64_t whole = share * ranks;
    switch (kind) {
        case CollectiveKind::all_reduce:
        case CollectiveKind::broadcast: return {elements, elements, elements, true};
        case CollectiveKind::reduce_scatter: return {share, whole, share};
        case CollectiveKind::all_gather: return {share, share, whole};
        case CollectiveKind::all_to_all: return {share, whole, whole};
    }
    return {};
}

TensorId add_buffer(StepGraph& graph, const char* name, std::int64_t elements, DType dtype) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = {{elements}};
    tensor.dtype = dtype;
    tensor.role = Role::communication;
    tensor.lifetime = Lifetime::carried;
    tensor.initial.kind = Initial::Kind::zero;
    graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
}

/// All ranks in one class, along dp; stream 0 computes, and here has nothing to do.
StepGraph frame(const machine::Placement& placement) {
    StepGraph graph;
    graph.mesh.dp = placement.ranks;
    graph.placement = placement;
    graph.communicators = {{"all", {plan::Axis::dp}, placement.ranks, {}}};
    graph.streams = {{Stream::Lane::compute, {}, "compute"}, {Stream::Lane::communication, {0}, "all"}};
    graph.blocks = {{"step", Phase::gradient_sync, {}, 0}};
    graph.classes = {{"all", {{Issue{BlockId{0}, 0, 0}}}, placement.ranks, 0}};
    graph.class_of_stage = {RankClassId{0}};
    return graph;
}

}  // namespace

StepGraph build_collective(CollectiveKind kind, Bytes bytes, DType dtype, const machine::Placement& placement) {
    if (placement.ranks < 2)
        throw InputError(
            fmt::format("a {} on {} rank moves nothing; use 2 ranks or more", to_string(kind), placement.ranks));
    const auto elements = static_cast<std::int64_t>(bytes / size_of(dtype));
    const Sizes sizes = sizes_of(kind, elements, placement.ranks);
    if (sizes.count < 1)
        throw InputError(
            fmt::format("a {} of {} has less than one {} for each of {} ranks; use more bytes or fewer ranks",
                        to_string(kind), config::format(bytes), to_string(dtype), placement.ranks));
    StepGraph graph = frame(placement);
    graph.name = to_string(kind);
    const TensorId send = add_buffer(graph, "send", sizes.send, dtype);
    const TensorId receive = sizes.is_in_place ? send : add_buffer(graph, "receive", sizes.receive, dtype);
    Op op;
    op.name = to_string(kind);
    op.phase = Phase::gradient_sync;
    op.kind = Collective{kind, CommunicatorId{0}, Reduction::sum, sizes.count, dtype};
    op.in = {send};
    op.out = {{receive, sizes.is_in_place ? Access::update : Access::overwrite}};
    op.stream = StreamId{1};
    op.bytes = bytes_of(graph, op);
    graph.blocks[0].ops.push_back(std::move(op));
    return graph;
}

const Collective* only_collective(const StepGraph& graph) {
    if (graph.blocks.size() != 1 || graph.blocks[0].ops.size() != 1) return nullptr;
    return std::get_if<Collective>(&graph.blocks[0].ops[0].kind);
}

}  // namespace lockstep::step
