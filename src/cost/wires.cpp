#include "cost/wires.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "machine/route.hpp"

namespace lockstep::cost {

namespace {

/// Local indices of the ranks, by node.
std::map<int, std::vector<int>> locals_by_node(const machine::Placement& placement, const std::vector<int>& ranks) {
    std::map<int, std::vector<int>> result;
    for (int rank : ranks) result[placement.node_of(rank)].push_back(placement.local_of(rank));
    return result;
}

bool is_on_nvswitch(const machine::Topology& topology, machine::VertexId gpu) {
    const auto links = topology.links_of(gpu);
    return std::any_of(links.begin(), links.end(), [&](machine::LinkId id) {
        const machine::VertexId end = machine::other_end(topology.links[id.index()], gpu);
        return topology.vertices[end.index()].kind == machine::VertexKind::nvswitch;
    });
}

/// Each GPU sends one byte to each other one along its route. NVLinks to a switch serve one destination after the
/// other, direct NVLinks work side by side; on PCIe and sockets the link that most routes cross in one direction sets
/// the time.
double seconds_per_pair_byte(const machine::Topology& topology, const std::vector<int>& gpus) {
    std::map<std::pair<machine::LinkId, machine::VertexId>, double>
        crossing;  // seconds by link and the end it is left at
    double longest = 0;
    for (int from : gpus) {
        const bool is_switched = is_on_nvswitch(topology, topology.gpu(from));
        double over_nvlink = 0;
        for (int to : gpus) {
            if (from == to) continue;
            machine::VertexId at = topology.gpu(from);
            const machine::Route route = machine::find_route(topology, at, topology.gpu(to));
            const double alone = 1 / route.bandwidth.value;
            if (route.nvlinks > 0) {
                over_nvlink = is_switched ? over_nvlink + alone : std::max(over_nvlink, alone);
                continue;
            }
            for (machine::LinkId id : route.links) {
                crossing[{id, at}] += 1 / topology.links[id.index()].per_direction.value;
                at = machine::other_end(topology.links[id.index()], at);
            }
        }
        longest = std::max(longest, over_nvlink);
    }
    for (const auto& [place, time] : crossing) longest = std::max(longest, time);
    return longest;
}

struct Extremes {
    std::vector<int> fullest, emptiest;  ///< local indices
    int nodes = 0;
};

Extremes extremes_of(const machine::Placement& placement, const std::vector<int>& ranks) {
    const auto locals = locals_by_node(placement, ranks);
    const auto by_size = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
    return {std::max_element(locals.begin(), locals.end(), by_size)->second,
            std::min_element(locals.begin(), locals.end(), by_size)->second, static_cast<int>(locals.size())};
}

}  // namespace

Bandwidth network_share(const machine::Machine& machine, const machine::Placement& placement, int local_ranks) {
    if (!machine.network)
        throw InputError(fmt::format("{} has no network between its nodes ({} ranks need {}); give network: NAME",
                                     machine.name, placement.ranks, placement.nodes()));
    const machine::Network& network = *machine.network;
    const int nics = network.nics_per_node > 0 ? network.nics_per_node : machine.node.nics();
    if (nics < 1)
        throw InputError(fmt::format("network {} gives no nics_per_node and the node of {} has no NICs; give one",
                                     network.name, machine.name));
    const Bandwidth node = static_cast<double>(nics) * network.per_nic / network.oversubscription;
    const Bandwidth share = node * (static_cast<double>(local_ranks) / placement.ranks_per_node);
    const Bandwidth pcie = static_cast<double>(local_ranks) * machine.device.pcie.per_direction;
    return pcie.value > 0 ? std::min(share, pcie) : share;
}

Placing placing_of(const machine::Placement& placement, const std::vector<int>& ranks) {
    const Extremes extremes = extremes_of(placement, ranks);
    return {extremes.fullest, static_cast<int>(extremes.emptiest.size()), extremes.nodes,
            static_cast<int>(ranks.size())};
}

Wires find_wires(const machine::Machine& machine, const machine::Placement& placement, const std::vector<int>& ranks) {
    const auto [fullest, emptiest, nodes] = extremes_of(placement, ranks);
    Wires wires;
    bool is_on_nvlink = false;
    wires.ranks = static_cast<int>(ranks.size());
    wires.nodes = nodes;
    wires.local_ranks = static_cast<int>(fullest.size());
    if (fullest.size() > 1) {
        const machine::RingChannels rings = machine::find_rings(machine.node, fullest);
        wires.channels = rings.total();
        is_on_nvlink = rings.proximity == machine::Proximity::nvlink;
        wires.pair_seconds_per_byte = seconds_per_pair_byte(machine.node, fullest);
    }
    if (wires.nodes > 1) {
        wires.network = network_share(machine, placement, static_cast<int>(emptiest.size()));
        wires.network_latency = machine.network->latency;
    }
    std::vector<int> used;
    for (const int rank : ranks)
        if (const int node = placement.node_of(rank); used.empty() || used.back() != node) used.push_back(node);
    wires.offer = find_offer(machine, used, wires.local_ranks, is_on_nvlink);
    return wires;
}

}  // namespace lockstep::cost
