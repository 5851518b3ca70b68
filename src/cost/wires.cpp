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

/// Each GPU sends one byte to each other one along its route; the link with the longest queue in one direction sets
/// the time. Routes through several parallel links spread over them by rate.
double seconds_per_pair_byte(const machine::Topology& topology, const std::vector<int>& gpus) {
    std::map<std::pair<machine::LinkId, machine::VertexId>, double> seconds;  // by link and the end it is left from
    double narrowest = 0;
    for (int from : gpus) {
        double nvlink_out = 0;
        for (int to : gpus) {
            if (from == to) continue;
            machine::VertexId at = topology.gpu(from);
            const machine::Route route = machine::find_route(topology, at, topology.gpu(to));
            if (route.nvlinks > 0) {
                nvlink_out += 1 / route.bandwidth.value;
                narrowest = std::max(narrowest, 1 / route.bandwidth.value);
                continue;
            }
            for (machine::LinkId id : route.links) {
                const machine::Link& link = topology.links[id.index()];
                seconds[{id, at}] += 1 / link.per_direction.value;
                at = machine::other_end(link, at);
            }
        }
        // Through switches all NVLinks of a GPU serve each destination in turn; direct links work side by side.
        const bool is_switched = std::any_of(topology.links.begin(), topology.links.end(), [&](const auto& link) {
            const bool touches = link.a == topology.gpu(from) || link.b == topology.gpu(from);
            return touches && link.kind == machine::LinkKind::nvlink &&
                   topology.vertices[machine::other_end(link, topology.gpu(from)).index()].kind ==
                       machine::VertexKind::nvswitch;
        });
        if (is_switched) narrowest = std::max(narrowest, nvlink_out);
    }
    for (const auto& [place, time] : seconds) narrowest = std::max(narrowest, time);
    return narrowest;
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

Wires find_wires(const machine::Machine& machine, const machine::Placement& placement, const std::vector<int>& ranks) {
    const auto locals = locals_by_node(placement, ranks);
    const auto by_size = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
    const std::vector<int>& fullest = std::max_element(locals.begin(), locals.end(), by_size)->second;
    const std::vector<int>& emptiest = std::min_element(locals.begin(), locals.end(), by_size)->second;
    Wires wires;
    wires.ranks = static_cast<int>(ranks.size());
    wires.nodes = static_cast<int>(locals.size());
    wires.local_ranks = static_cast<int>(fullest.size());
    if (fullest.size() > 1) {
        wires.channels = machine::find_rings(machine.node, fullest).total();
        wires.pair_seconds_per_byte = seconds_per_pair_byte(machine.node, fullest);
    }
    if (wires.nodes > 1) {
        wires.network = network_share(machine, placement, static_cast<int>(emptiest.size()));
        wires.network_latency = machine.network->latency;
    }
    return wires;
}

}  // namespace lockstep::cost
