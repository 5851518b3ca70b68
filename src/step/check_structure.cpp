#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"

namespace lockstep::step {

namespace {

template <class Tag, class Table>
void require(Id<Tag> id, const Table& table, std::string_view who, std::string_view name, std::string_view what) {
    if (id.is_valid() && id.index() < table.size()) return;
    throw InputError(fmt::format("{} {} names {} {} (there are {}); give it one that exists", who, name, what, id.value,
                                 table.size()));
}

void check_messages(const StepGraph& graph, const Op& op, const P2PGroup& group) {
    require(group.communicator, graph.communicators, "op", op.name, "the communicator");
    const Communicator& communicator = graph.communicators[group.communicator.index()];
    for (const auto* messages : {&group.sends, &group.receives})
        for (const Message& message : *messages) {
            require(message.tensor, graph.tensors, "op", op.name, "the tensor");
            const plan::Axis axis = message.peer.axis;
            if (std::find(communicator.axes.begin(), communicator.axes.end(), axis) == communicator.axes.end())
                throw InputError(
                    fmt::format("op {} has a peer along {} but communicator {} has no such axis; use one "
                                "that has",
                                op.name, to_string(axis), communicator.name));
            if (axis != plan::Axis::pp && !message.peer.wraps)
                throw InputError(
                    fmt::format("op {} has a peer along {} that does not wrap around (all ranks of a "
                                "stage run one program, the last too); let it wrap",
                                op.name, to_string(axis)));
        }
}

void check_op(const StepGraph& graph, const Op& op) {
    for (const auto* ids : {&op.in, &op.after})
        for (const TensorId id : *ids) require(id, graph.tensors, "op", op.name, "the tensor");
    for (const Write& write : op.out) require(write.tensor, graph.tensors, "op", op.name, "the tensor");
    require(op.stream, graph.streams, "op", op.name, "the stream");
    if (const auto* collective = std::get_if<Collective>(&op.kind))
        require(collective->communicator, graph.communicators, "op", op.name, "the communicator");
    if (const auto* group = std::get_if<P2PGroup>(&op.kind)) check_messages(graph, op, *group);
}

void check_communicator(const StepGraph& graph, const Communicator& communicator) {
    const std::vector<int>& stages = communicator.stages;
    const bool has_pp =
        std::find(communicator.axes.begin(), communicator.axes.end(), plan::Axis::pp) != communicator.axes.end();
    const bool is_ascending = std::adjacent_find(stages.begin(), stages.end(), std::greater_equal<>()) == stages.end();
    if (!stages.empty() && (!has_pp || !is_ascending || stages.front() < 0 || stages.back() >= graph.mesh.pp))
        throw InputError(
            fmt::format("communicator {} takes part in stages {} of {}; list stages in ascending order, "
                        "and only of a communicator along pp",
                        communicator.name, fmt::join(stages, ", "), graph.mesh.pp));
    std::int64_t size = 1;
    for (const plan::Axis axis : communicator.axes)
        size *= axis == plan::Axis::pp && !stages.empty() ? static_cast<std::int64_t>(stages.size())
                                                          : graph.mesh.extent(axis);
    if (size != communicator.size)
        throw InputError(fmt::format("communicator {} has {} ranks but its axes span {}; make them equal",
                                     communicator.name, communicator.size, size));
}

/// How far the messages of each block reach to other micro-batches.
struct Reach {
    std::int32_t back = 0, ahead = 0;
};
Reach reach_of(const Block& block) {
    Reach reach;
    for (const Op& op : block.ops)
        if (const auto* group = std::get_if<P2PGroup>(&op.kind))
            for (const auto* messages : {&group->sends, &group->receives})
                for (const Message& message : *messages) {
                    reach.back = std::min(reach.back, message.micro_batch_offset);
                    reach.ahead = std::max(reach.ahead, message.micro_batch_offset);
                }
    return reach;
}

void check_program(const StepGraph& graph, const RankClass& rank_class, const std::vector<Reach>& reaches) {
    for (const Issue& issue : rank_class.program.issues) {
        require(issue.block, graph.blocks, "the program of class", rank_class.name, "the block");
        const Reach& reach = reaches[issue.block.index()];
        if (issue.micro_batch < 0 || issue.micro_batch >= graph.micro_batches)
            throw InputError(fmt::format("class {} issues block {} for micro-batch {} of {}; count from 0",
                                         rank_class.name, graph.block(issue.block).name, issue.micro_batch,
                                         graph.micro_batches));
        if (issue.micro_batch + reach.back < 0 || issue.micro_batch + reach.ahead >= graph.micro_batches)
            throw InputError(
                fmt::format("class {} issues block {} for micro-batch {}, and its messages are of micro-batches {} to "
                            "{} of {}; leave those out that don't exist",
                            rank_class.name, graph.block(issue.block).name, issue.micro_batch,
                            issue.micro_batch + reach.back, issue.micro_batch + reach.ahead, graph.micro_batches));
    }
}

void check_blocks(const StepGraph& graph) {
    std::int32_t first = 0;
    for (const Block& block : graph.blocks) {
        if (block.first_op != first)
            throw InputError(fmt::format("block {} numbers its ops from {} (those before it end at {}); number them on",
                                         block.name, block.first_op, first));
        first += static_cast<std::int32_t>(block.ops.size());
        for (const Op& op : block.ops) check_op(graph, op);
    }
}

}  // namespace

void check_structure(const StepGraph& graph) {
    check_tensors(graph);
    for (const Communicator& communicator : graph.communicators) check_communicator(graph, communicator);
    for (const Stream& stream : graph.streams)
        if (stream.lane == Stream::Lane::communication)
            require(stream.communicator, graph.communicators, "stream", stream.name, "the communicator");
    check_blocks(graph);
    if (graph.class_of_stage.size() != static_cast<std::size_t>(graph.mesh.pp))
        throw InputError(fmt::format("{} stages have a class but the mesh has pp={}; name one class for each stage",
                                     graph.class_of_stage.size(), graph.mesh.pp));
    for (const RankClassId id : graph.class_of_stage) require(id, graph.classes, "a pipeline", "stage", "the class");
    std::vector<Reach> reaches;
    for (const Block& block : graph.blocks) reaches.push_back(reach_of(block));
    for (const RankClass& rank_class : graph.classes) check_program(graph, rank_class, reaches);
    if (graph.loss.is_valid()) require(graph.loss, graph.tensors, "the", "loss", "the tensor");
    for (const TensorId id : graph.reduced_gradients) require(id, graph.tensors, "a reduced", "gradient", "the tensor");
}

}  // namespace lockstep::step
