#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"

namespace lockstep::step {

namespace {

template <class Tag, class Table>
void require(Id<Tag> id, const Table& table, const std::string& who, const char* what) {
    if (id.is_valid() && id.index() < table.size()) return;
    throw InputError(
        fmt::format("{} names {} {} (there are {}); give it one that exists", who, what, id.value, table.size()));
}

void check_view(const StepGraph& graph, const Tensor& tensor) {
    const std::string who = fmt::format("tensor {}", tensor.name);
    require(tensor.view->of, graph.tensors, who, "the storage");
    const Tensor& storage = graph.tensor(tensor.view->of);
    if (storage.view)
        throw InputError(
            fmt::format("{} is a view of {}, which is a view itself; name the storage", who, storage.name));
    if (storage.dtype != tensor.dtype)
        throw InputError(fmt::format("{} is a {} view of {}, which holds {}; use the same dtype", who,
                                     to_string(tensor.dtype), storage.name, to_string(storage.dtype)));
    const std::int64_t end = tensor.view->first_element + tensor.elements();
    if (tensor.view->first_element < 0 || end > storage.elements())
        throw InputError(
            fmt::format("{} is a view outside its storage (elements {} to {} of {}, which has {}); move it inside", who,
                        tensor.view->first_element, end, storage.name, storage.elements()));
}

void check_tensors(const StepGraph& graph) {
    for (const Tensor& tensor : graph.tensors) {
        const auto& extents = tensor.shape.extents;
        if (std::any_of(extents.begin(), extents.end(), [](std::int64_t e) { return e < 1; }) || tensor.slots < 1)
            throw InputError(fmt::format("tensor {} of shape {} in {} copies is empty; every extent must be at least 1",
                                         tensor.name, to_string(tensor.shape), tensor.slots));
        for (const Shard& shard : tensor.shards)
            if (shard.dimension < 0 || static_cast<std::size_t>(shard.dimension) >= tensor.shape.rank())
                throw InputError(fmt::format("tensor {} of shape {} is split along dimension {}; it has none such",
                                             tensor.name, to_string(tensor.shape), shard.dimension));
        if (tensor.view) check_view(graph, tensor);
    }
}

void check_op(const StepGraph& graph, const Op& op) {
    const std::string who = fmt::format("op {}", op.name);
    for (const TensorId id : op.in) require(id, graph.tensors, who, "the tensor");
    for (const Write& write : op.out) require(write.tensor, graph.tensors, who, "the tensor");
    require(op.stream, graph.streams, who, "the stream");
    if (const auto* collective = std::get_if<Collective>(&op.kind))
        require(collective->communicator, graph.communicators, who, "the communicator");
    if (const auto* group = std::get_if<P2PGroup>(&op.kind)) {
        require(group->communicator, graph.communicators, who, "the communicator");
        for (const auto* messages : {&group->sends, &group->receives})
            for (const Message& message : *messages) require(message.tensor, graph.tensors, who, "the tensor");
    }
}

void check_communicator(const StepGraph& graph, const Communicator& communicator) {
    // One along pp may leave stages out (first and last share embeddings): the run over stages counts those.
    std::int64_t size = 1;
    for (const plan::Axis axis : communicator.axes) {
        if (axis == plan::Axis::pp) return;
        size *= graph.mesh.extent(axis);
    }
    if (size != communicator.size)
        throw InputError(fmt::format("communicator {} has {} ranks but its axes span {}; make them equal",
                                     communicator.name, communicator.size, size));
}

void check_program(const StepGraph& graph, const RankClass& rank_class) {
    for (const Issue& issue : rank_class.program.issues) {
        require(issue.block, graph.blocks, fmt::format("the program of class {}", rank_class.name), "the block");
        if (issue.micro_batch < 0 || issue.micro_batch >= graph.micro_batches)
            throw InputError(fmt::format("class {} issues block {} for micro-batch {} of {}; count from 0",
                                         rank_class.name, graph.block(issue.block).name, issue.micro_batch,
                                         graph.micro_batches));
    }
}

}  // namespace

void check_structure(const StepGraph& graph) {
    check_tensors(graph);
    for (const Stream& stream : graph.streams)
        if (stream.lane == Stream::Lane::communication)
            require(stream.communicator, graph.communicators, fmt::format("stream {}", stream.name),
                    "the communicator");
    for (const Communicator& communicator : graph.communicators) check_communicator(graph, communicator);
    std::int32_t first = 0;
    for (const Block& block : graph.blocks) {
        if (block.first_op != first)
            throw InputError(fmt::format("block {} numbers its ops from {} (those before it end at {}); number them on",
                                         block.name, block.first_op, first));
        first += static_cast<std::int32_t>(block.ops.size());
        for (const Op& op : block.ops) check_op(graph, op);
    }
    if (graph.class_of_stage.size() != static_cast<std::size_t>(graph.mesh.pp))
        throw InputError(fmt::format("{} stages have a class but the mesh has pp={}; name one class for each stage",
                                     graph.class_of_stage.size(), graph.mesh.pp));
    for (const RankClassId id : graph.class_of_stage) require(id, graph.classes, "a pipeline stage", "the class");
    for (const RankClass& rank_class : graph.classes) check_program(graph, rank_class);
    if (graph.loss.is_valid()) require(graph.loss, graph.tensors, "the loss", "the tensor");
    for (const TensorId id : graph.reduced_gradients) require(id, graph.tensors, "a reduced gradient", "the tensor");
}

}  // namespace lockstep::step
