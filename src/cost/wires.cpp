#include "cost/wires.hpp"

#include <algorithm>
#include <map>

namespace lockstep::cost {

namespace {

/// Local indices of the ranks, by node.
std::map<int, std::vector<int>> locals_by_node(const machine::Placement& placement, const std::vector<int>& ranks) {
    std::map<int, std::vector<int>> result;
    for (const int rank : ranks) result[placement.node_of(rank)].push_back(placement.local_of(rank));
    return result;
}

}  // namespace

Placing placing_of(const machine::Machine& machine, const machine::Placement& placement,
                   const std::vector<int>& ranks) {
    std::vector<std::pair<int, std::vector<int>>> patterns;
    int nodes = 0, last = -1;
    std::vector<int> locals;
    const auto close = [&] {
        if (last < 0) return;
        std::pair pattern{machine.kind_of(last), std::move(locals)};
        if (std::ranges::find(patterns, pattern) == patterns.end()) patterns.push_back(std::move(pattern));
        locals.clear();
        ++nodes;
    };
    for (const int rank : ranks) {
        const int node = placement.node_of(rank);
        if (node != last) close();
        last = node;
        locals.push_back(placement.local_of(rank));
    }
    close();
    std::ranges::sort(patterns);
    return {std::move(patterns), nodes, static_cast<int>(ranks.size())};
}

Wires find_wires(const Fabric& fabric, const machine::Machine& machine, const machine::Placement& placement,
                 const std::vector<int>& ranks) {
    const auto by_node = locals_by_node(placement, ranks);
    Wires wires;
    wires.ranks = static_cast<int>(ranks.size());
    bool is_on_nvlink = true;
    wires.nodes = static_cast<int>(by_node.size());
    wires.slowest_node = by_node.begin()->first;
    Bandwidth least_reached;
    std::vector<int> nodes;
    for (const auto& [node, locals] : by_node) {
        nodes.push_back(node);
        wires.local_ranks = std::max(wires.local_ranks, static_cast<int>(locals.size()));
        if (locals.size() < 2) continue;
        const NodeTraffic& traffic = fabric.traffic(node, locals);
        is_on_nvlink = is_on_nvlink && traffic.is_on_nvlink;
        wires.pair_seconds_per_byte = std::max(wires.pair_seconds_per_byte, traffic.pair_seconds_per_byte);
        const Bandwidth reached = traffic.channels * machine.calibration_of(node).link;
        if (wires.channels.value > 0 && reached >= least_reached) continue;
        least_reached = reached;
        wires.channels = traffic.channels;
        wires.slowest_node = node;
    }
    if (wires.nodes > 1) {
        wires.network = fabric.network_rate(ranks);
        wires.network_latency = machine.network->latency;
    }
    wires.offer = find_offer(machine, nodes, wires.local_ranks, is_on_nvlink);
    const int kind = machine.kind_of(wires.slowest_node);
    wires.slowest_node = 0;
    while (machine.kind_of(wires.slowest_node) != kind) ++wires.slowest_node;
    return wires;
}

Wires find_wires(const machine::Machine& machine, const machine::Placement& placement, const std::vector<int>& ranks) {
    return find_wires(Fabric(machine, placement), machine, placement, ranks);
}

MessageWire find_message_wire(const Fabric& fabric, const machine::Machine& machine,
                              const machine::Placement& placement, int from, int to) {
    const int a = placement.node_of(from), b = placement.node_of(to);
    if (a != b) return {true, fabric.network_rate(from, to), machine.kind_of(a)};
    return {false, fabric.hop_rate(a, placement.local_of(from), placement.local_of(to)), machine.kind_of(a)};
}

}  // namespace lockstep::cost
