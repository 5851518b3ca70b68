#include "cost/cost_model.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cost/collective_cost.hpp"
#include "cost/compute_cost.hpp"
#include "cost/peer.hpp"

namespace lockstep::cost {

namespace {

/// The lowest of a rank's communicator.
int lowest_member(const plan::Mesh& mesh, const step::Communicator& communicator, int rank) {
    plan::Coordinates at = mesh.coordinates(rank);
    for (const plan::Axis axis : communicator.axes) at[axis] = 0;
    if (!communicator.stages.empty()) at.pp = communicator.stages.front();
    return mesh.rank(at);
}

bool takes_part(const plan::Mesh& mesh, const step::Communicator& communicator, int rank) {
    return communicator.stages.empty() || std::ranges::binary_search(communicator.stages, mesh.coordinates(rank).pp);
}

/// Shares such that a transfer at `rate`, its full one, overloads no link.
Loads at_most_full(Loads loads, const std::vector<Bandwidth>& links, Bandwidth rate) {
    double most = 1;
    for (const step::LinkLoad& load : loads)
        most = std::max(most, load.share * (rate / links[static_cast<std::size_t>(load.link)]));
    for (step::LinkLoad& load : loads) load.share /= most;
    return loads;
}

}  // namespace

CostModel::CostModel(machine::Machine machine, machine::Placement placement)
    : machine_(std::move(machine)),
      placement_(placement),
      fabric_(machine_, placement_),
      links_(fabric_.capacities()) {}

Seconds CostModel::compute(const step::StepGraph& graph, int rank, const step::OpInstance& op) const {
    const int node = placement_.node_of(rank);
    return compute_time(machine_.device_of(node), machine_.calibration_of(node), graph, *op.op);
}

const machine::Calibration& CostModel::calibration_of(const Wires& wires) const {
    return machine_.calibration_of(wires.slowest_node);
}

step::CommunicationTime CostModel::communication(const step::StepGraph& graph, int rank,
                                                 const step::OpInstance& op) const {
    const std::lock_guard lock(mutex_);
    if (const auto* group = std::get_if<step::P2PGroup>(&op.op->kind)) return messages(graph, rank, *group);
    const auto* collective = std::get_if<step::Collective>(&op.op->kind);
    if (!collective) throw LogicError("the communication time of another kind of op was asked for: " + op.op->name);
    step::CommunicationTime time = choice_locked(graph, rank, *collective).time;
    time.latency += collective->delay;
    return time;
}

CollectiveChoice CostModel::choice_locked(const step::StepGraph& graph, int rank,
                                          const step::Collective& collective) const {
    const Wires& w = wires(graph, graph.communicators[collective.communicator.index()], rank);
    return choose_collective(calibration_of(w), w, collective.kind, buffer_bytes(collective, w.ranks));
}

CollectiveChoice CostModel::choice(const step::StepGraph& graph, int rank, const step::Collective& collective) const {
    const std::lock_guard lock(mutex_);
    return choice_locked(graph, rank, collective);
}

CostModel::WireKey CostModel::key_of(const plan::Mesh& m, const step::Communicator& communicator, int rank) {
    std::uint64_t axes = 0, stages = 0;
    for (const plan::Axis axis : communicator.axes) axes |= std::uint64_t{1} << static_cast<int>(axis);
    for (const int stage : communicator.stages) stages = random_bits(stages, static_cast<std::uint64_t>(stage), 1);
    const auto extent = [](int n) { return static_cast<std::uint64_t>(n); };
    return {extent(m.tp),
            extent(m.cp),
            extent(m.ep),
            extent(m.dp),
            extent(m.replica),
            extent(m.pp),
            axes,
            stages,
            extent(lowest_member(m, communicator, rank))};
}

/// Ranks that lie alike on their nodes have the same wires: rings are searched once for all of them.
int CostModel::wires_number(const step::StepGraph& graph, const step::Communicator& communicator, int rank) const {
    const auto [known, is_new] = number_of_communicator_.try_emplace(key_of(graph.mesh, communicator, rank));
    if (!is_new) return known->second;
    const std::vector<int> ranks = step::members(graph.mesh, communicator, rank);
    const double uplink_rate = fabric_.has_uplinks() ? fabric_.network_rate(ranks).value : 0;
    const auto [alike, is_first] =
        number_of_placing_.try_emplace({placing_of(machine_, placement_, ranks), uplink_rate});
    if (is_first) {
        const Wires found = find_wires(fabric_, machine_, placement_, ranks);
        const auto place = std::ranges::find(known_wires_, found);
        alike->second = static_cast<int>(place - known_wires_.begin());
        if (place == known_wires_.end()) known_wires_.push_back(found);
    }
    return known->second = alike->second;
}

const Wires& CostModel::wires(const step::StepGraph& graph, const step::Communicator& communicator, int rank) const {
    return known_wires_[static_cast<std::size_t>(wires_number(graph, communicator, rank))];
}

MessageWire CostModel::message_wire(int from, int to) const {
    return find_message_wire(fabric_, machine_, placement_, from, to);
}

/// Messages of a group go at the same time: sends and receives use different directions of the wires, those of one
/// direction follow one another.
step::CommunicationTime CostModel::messages(const step::StepGraph& graph, int rank, const step::P2PGroup& group) const {
    Seconds latency, sending, receiving;
    Bytes sent, received;
    const auto add = [&](int from, int to, Bytes bytes, Seconds& transfer, Bytes& moved) {
        if (from == to) return;
        const auto time = message_time(machine_, placement_, message_wire(from, to), from, bytes);
        latency = std::max(latency, time.latency);
        transfer += time.transfer;
        moved += bytes;
    };
    for (const step::Message& m : group.sends)
        add(rank, peer_rank(graph.mesh, rank, m.peer), graph.tensor(m.tensor).bytes(), sending, sent);
    for (const step::Message& m : group.receives)
        add(peer_rank(graph.mesh, rank, m.peer), rank, graph.tensor(m.tensor).bytes(), receiving, received);
    return {latency, std::max(sending, receiving), std::max(sent, received)};
}

std::vector<Bandwidth> CostModel::links() const { return links_; }

std::vector<step::LinkLoad> CostModel::loads(const step::StepGraph& graph, int rank, const step::OpInstance& op) const {
    const std::lock_guard lock(mutex_);
    if (const auto* group = std::get_if<step::P2PGroup>(&op.op->kind)) return message_loads(graph, rank, *group);
    if (const auto* collective = std::get_if<step::Collective>(&op.op->kind))
        return collective_loads(graph, rank, *collective);
    return {};
}

Loads CostModel::collective_loads(const step::StepGraph& graph, int rank, const step::Collective& collective) const {
    const step::Communicator& communicator = graph.communicators[collective.communicator.index()];
    const std::vector<int> ranks = step::members(graph.mesh, communicator, rank);
    if (ranks.size() < 2) return {};
    const Wires& w = wires(graph, communicator, rank);
    const bool is_pairwise = collective.kind == step::CollectiveKind::all_to_all;
    return at_most_full(is_pairwise ? fabric_.all_to_all(ranks) : fabric_.ring(ranks), links_,
                        full_rate(calibration_of(w), w, collective.kind));
}

Loads CostModel::message_loads(const step::StepGraph& graph, int rank, const step::P2PGroup& group) const {
    const Bytes wire = messages(graph, rank, group).wire;
    if (wire.value <= 0) return {};
    Loads loads;
    const auto add = [&](int from, int to, Bytes bytes) {
        if (from == to) return;
        const MessageWire w = message_wire(from, to);
        const Bandwidth rate = bytes / message_time(machine_, placement_, w, from, bytes).transfer;
        for (const step::LinkLoad& load : at_most_full(fabric_.message(from, to), links_, rate))
            loads.push_back({load.link, load.share * 0.5 * (bytes / wire)});
    };
    for (const step::Message& m : group.sends)
        add(rank, peer_rank(graph.mesh, rank, m.peer), graph.tensor(m.tensor).bytes());
    for (const step::Message& m : group.receives)
        add(peer_rank(graph.mesh, rank, m.peer), rank, graph.tensor(m.tensor).bytes());
    return merged(std::move(loads));
}

/// The kind of its node, and numbers of the wires of its communicators and of the messages its class sends.
std::vector<std::int64_t> CostModel::likeness(const step::StepGraph& graph, int rank) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::int64_t> result{machine_.kind_of(placement_.node_of(rank))};
    for (const step::Communicator& communicator : graph.communicators)
        result.push_back(takes_part(graph.mesh, communicator, rank) ? wires_number(graph, communicator, rank) : -1);
    return result;
}

}  // namespace lockstep::cost
