#include "step/graph.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

std::vector<int> members(const plan::Mesh& mesh, const Communicator& communicator, int rank) {
    std::vector<int> all = mesh.group(rank, communicator.axes);
    const std::vector<int>& stages = communicator.stages;
    if (stages.empty()) return all;
    auto takes_part = [&](int member) {
        return std::binary_search(stages.begin(), stages.end(), mesh.coordinates(member).pp);
    };
    if (!takes_part(rank)) return {};
    std::erase_if(all, [&](int member) { return !takes_part(member); });
    return all;
}

int peer_member(const StepGraph& graph, int rank, CommunicatorId communicator, const Peer& peer) {
    plan::Coordinates there = graph.mesh.coordinates(rank);
    const int extent = graph.mesh.extent(peer.axis);
    int at = there[peer.axis] + peer.offset;
    if (peer.wraps) at = (at % extent + extent) % extent;
    if (at < 0 || at >= extent) throw LogicError(fmt::format("rank {} has no neighbour at {:+}", rank, peer.offset));
    there[peer.axis] = at;
    const std::vector<int> group = members(graph.mesh, graph.communicators[communicator.index()], rank);
    const auto found = std::find(group.begin(), group.end(), graph.mesh.rank(there));
    if (found == group.end()) throw LogicError(fmt::format("rank {} sends outside its communicator", rank));
    return static_cast<int>(found - group.begin());
}

std::int32_t StepGraph::op_count() const {
    if (blocks.empty()) return 0;
    return blocks.back().first_op + static_cast<std::int32_t>(blocks.back().ops.size());
}

const Op& StepGraph::op(std::int32_t number) const {
    if (number < 0 || number >= op_count())
        throw LogicError(fmt::format("op {} of a graph of {} ops", number, op_count()));
    const auto after = std::upper_bound(blocks.begin(), blocks.end(), number,
                                        [](std::int32_t n, const Block& block) { return n < block.first_op; });
    const Block& block = *std::prev(after);
    return block.ops[static_cast<std::size_t>(number - block.first_op)];
}

}  // namespace lockstep::step
