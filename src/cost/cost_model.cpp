#include "cost/cost_model.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "cost/collective_cost.hpp"
#include "cost/compute_cost.hpp"
#include "cost/peer.hpp"

namespace lockstep::cost {

CostModel::CostModel(machine::Machine machine, machine::Placement placement)
    : machine_(std::move(machine)), placement_(placement) {}

Seconds CostModel::compute(const step::StepGraph& graph, int, const step::OpInstance& op) const {
    return compute_time(machine_, graph, *op.op);
}

step::CommunicationTime CostModel::communication(const step::StepGraph& graph, int rank,
                                                 const step::OpInstance& op) const {
    if (const auto* group = std::get_if<step::P2PGroup>(&op.op->kind)) return messages(graph, rank, *group);
    const auto* collective = std::get_if<step::Collective>(&op.op->kind);
    if (!collective) throw LogicError("the communication time of another kind of op was asked for: " + op.op->name);
    const Wires w = wires(graph, graph.communicators[collective->communicator.index()], rank);
    return collective_time(machine_.calibration, w, collective->kind, buffer_bytes(*collective, w.ranks));
}

Wires CostModel::wires(const step::StepGraph& graph, const step::Communicator& communicator, int rank) const {
    const plan::Mesh& m = graph.mesh;
    const WireKey key{{m.tp, m.cp, m.ep, m.dp, m.replica, m.pp}, rank, communicator.axes, communicator.stages};
    const std::lock_guard lock(mutex_);
    const auto known = wires_.find(key);
    if (known != wires_.end()) return known->second;
    const std::vector<int> ranks = step::members(m, communicator, rank);
    // Ranks that lie alike on their nodes have the same wires: rings are searched once for all of them.
    const auto [alike, is_new] = wires_of_pattern_.try_emplace(placing_of(placement_, ranks));
    if (is_new) alike->second = find_wires(machine_, placement_, ranks);
    return wires_.emplace(key, alike->second).first->second;
}

/// Messages of a group go at the same time: sends and receives use different directions of the wires, those of one
/// direction follow one another.
step::CommunicationTime CostModel::messages(const step::StepGraph& graph, int rank, const step::P2PGroup& group) const {
    Seconds latency, sending, receiving;
    for (const step::Message& m : group.sends) {
        const int to = peer_rank(graph.mesh, rank, m.peer);
        const auto time = message_time(machine_, placement_, rank, to, graph.tensor(m.tensor).bytes());
        latency = std::max(latency, time.latency);
        sending += time.transfer;
    }
    for (const step::Message& m : group.receives) {
        const int from = peer_rank(graph.mesh, rank, m.peer);
        const auto time = message_time(machine_, placement_, from, rank, graph.tensor(m.tensor).bytes());
        latency = std::max(latency, time.latency);
        receiving += time.transfer;
    }
    return {latency, std::max(sending, receiving)};
}

}  // namespace lockstep::cost
