#include "cost/fabric.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::cost {

namespace {

/// Runs of ranks on one node: node and local indices, in order.
std::vector<std::pair<int, std::vector<int>>> by_node(const machine::Placement& placement,
                                                      const std::vector<int>& ranks) {
    std::vector<std::pair<int, std::vector<int>>> result;
    for (const int rank : ranks) {
        const int node = placement.node_of(rank);
        if (result.empty() || result.back().first != node) result.push_back({node, {}});
        result.back().second.push_back(placement.local_of(rank));
    }
    return result;
}

std::vector<int> all_nics(const NodeTraffic& traffic) {
    std::vector<int> nics;
    for (const auto& of_gpu : traffic.nics) nics.insert(nics.end(), of_gpu.begin(), of_gpu.end());
    std::ranges::sort(nics);
    nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
    return nics;
}

}  // namespace

Fabric::Fabric(const machine::Machine& machine, const machine::Placement& placement)
    : machine_(machine), placement_(placement) {
    const int nodes = placement.nodes();
    if (nodes > 1 && !machine.network)
        throw InputError(fmt::format("{} has no network between its nodes ({} ranks need {}); give network: NAME",
                                     machine.name, placement.ranks, nodes));
    std::int32_t next = 0;
    for (int node = 0; node < nodes; ++node) {
        if (nodes > 1 && std::ranges::none_of(machine.nics_of(node), [](Bandwidth rate) { return rate.value > 0; }))
            throw InputError(fmt::format("network {} gives no nics_per_node and node {} of {} has no NICs; give one",
                                         machine.network->name, node, machine.name));
        auto& links = links_of_kind_[machine.kind_of(node)];
        if (!links)
            links = std::make_unique<NodeLinks>(machine.topology_of(node),
                                                nodes > 1 ? machine.nics_of(node) : std::vector<Bandwidth>{});
        first_of_node_.push_back(next);
        next += static_cast<std::int32_t>(links->capacities().size());
    }
    first_of_node_.push_back(next);
    if (nodes < 2 || machine.network->oversubscription <= 1) return;
    nodes_per_leaf_ = machine.network->nodes_per_leaf;
    if (machine.network->has_rails)
        for (int node = 0; node < nodes; ++node) rails_ = std::max(rails_, links_of(node).nics());
    const int groups = (nodes + nodes_per_leaf_ - 1) / nodes_per_leaf_;
    uplinks_.resize(static_cast<std::size_t>(groups * rails_));
    for (int node = 0; node < nodes; ++node) {
        const NodeLinks& links = links_of(node);
        for (int nic = 0; nic < links.nics(); ++nic) {
            const Leaf leaf = leaf_of(node, nic);
            uplinks_[static_cast<std::size_t>(leaf.group * rails_ + leaf.rail)] +=
                links.capacities()[static_cast<std::size_t>(links.nic_out(nic))] / machine.network->oversubscription;
        }
    }
}

Fabric::Leaf Fabric::leaf_of(int node, int nic) const {
    return {node / nodes_per_leaf_, rails_ > 1 ? nic % rails_ : 0};
}

std::vector<Bandwidth> Fabric::capacities() const {
    std::vector<Bandwidth> result;
    for (int node = 0; node < placement_.nodes(); ++node) {
        const NodeLinks& links = links_of(node);
        const machine::Calibration& calibration = machine_.calibration_of(node);
        for (std::size_t i = 0; i < links.capacities().size(); ++i) {
            const bool is_inside = static_cast<std::int32_t>(i) < links.first_nic();
            result.push_back(links.capacities()[i] *
                             (is_inside ? std::min(calibration.link, 1.0) : calibration.network));
        }
    }
    for (const Bandwidth uplink : uplinks_) result.insert(result.end(), 2, uplink * machine_.calibration.network);
    return result;
}

Bandwidth Fabric::narrowest(int node, const Loads& way) const {
    Bandwidth rate{std::numeric_limits<double>::infinity()};
    for (const step::LinkLoad& load : way)
        rate = std::min(rate, links_of(node).capacities()[static_cast<std::size_t>(load.link)] / load.share);
    return rate;
}

Bandwidth Fabric::narrowest_uplink(const Loads& loads) const {
    Bandwidth rate{std::numeric_limits<double>::infinity()};
    for (const step::LinkLoad& load : loads) {
        if (load.link < first_of_node_.back()) continue;
        const auto number = static_cast<std::size_t>(load.link - first_of_node_.back()) / 2;
        rate = std::min(rate, uplinks_[number] / load.share);
    }
    return rate;
}

Bandwidth Fabric::network_rate(const std::vector<int>& ranks) const {
    const auto nodes = by_node(placement_, ranks);
    if (nodes.size() < 2) return {};
    Bandwidth rate{std::numeric_limits<double>::infinity()};
    for (const auto& [node, locals] : nodes) {
        const NodeTraffic& here = traffic(node, locals);
        rate = std::min({rate, narrowest(node, here.leaving), narrowest(node, here.entering)});
    }
    return has_uplinks() ? std::min(rate, narrowest_uplink(ring(ranks))) : rate;
}

Bandwidth Fabric::network_rate(int from, int to) const {
    const int a = placement_.node_of(from), b = placement_.node_of(to);
    const Bandwidth rate = std::min(narrowest(a, traffic(a, {placement_.local_of(from)}).leaving),
                                    narrowest(b, traffic(b, {placement_.local_of(to)}).entering));
    return has_uplinks() ? std::min(rate, narrowest_uplink(message(from, to))) : rate;
}

const NodeTraffic& Fabric::traffic(int node, const std::vector<int>& locals) const {
    const auto [entry, is_new] = traffic_.try_emplace({machine_.kind_of(node), locals});
    if (is_new) entry->second = find_traffic(links_of(node), locals);
    return entry->second;
}

void Fabric::add(Loads& to, int node, const Loads& loads, double times) const {
    for (const step::LinkLoad& load : loads) to.push_back({first_of(node) + load.link, load.share * times});
}

/// The way to or from NICs. Their traffic may use an inner link up to its rate times the network's efficiency, whatever
/// share of it transfers inside the node reach.
void Fabric::add_way(Loads& to, int node, const Loads& way, double times) const {
    const double inside = std::min(machine_.calibration_of(node).link, 1.0) / machine_.calibration_of(node).network;
    for (const step::LinkLoad& load : way)
        to.push_back({first_of(node) + load.link,
                      load.share * times * (load.link < links_of(node).first_nic() ? std::min(inside, 1.0) : 1)});
}

void Fabric::load_uplink(Loads& loads, Leaf leaf, bool is_up, double share) const {
    if (uplinks_.empty() || share == 0) return;
    const int number = leaf.group * rails_ + leaf.rail;
    loads.push_back({first_of_node_.back() + 2 * number + (is_up ? 0 : 1), share});
}

/// One byte that leaves a node by some NICs, evenly, and enters another by some: up and down where the leaf changes.
/// Rail by rail where both use the same NICs.
void Fabric::load_crossing(Loads& loads, int from, int to, const std::vector<int>& nics_out,
                           const std::vector<int>& nics_in) const {
    if (uplinks_.empty()) return;
    const bool is_same_group = from / nodes_per_leaf_ == to / nodes_per_leaf_;
    if (is_same_group && (rails_ == 1 || nics_out == nics_in)) return;
    for (const int nic : nics_out)
        load_uplink(loads, leaf_of(from, nic), true, 1 / static_cast<double>(nics_out.size()));
    for (const int nic : nics_in) load_uplink(loads, leaf_of(to, nic), false, 1 / static_cast<double>(nics_in.size()));
}

Loads Fabric::ring(const std::vector<int>& ranks) const {
    Loads loads;
    const auto nodes = by_node(placement_, ranks);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto& [node, locals] = nodes[i];
        const NodeTraffic& here = traffic(node, locals);
        add(loads, node, here.ring, 1);
        if (nodes.size() == 1) continue;
        const auto& [next, next_locals] = nodes[(i + 1) % nodes.size()];
        add_way(loads, node, here.leaving, 1);
        add_way(loads, node, here.entering, 1);
        if (!uplinks_.empty()) load_crossing(loads, node, next, all_nics(here), all_nics(traffic(next, next_locals)));
    }
    return merged(std::move(loads));
}

Loads Fabric::all_to_all(const std::vector<int>& ranks) const {
    Loads loads;
    const auto nodes = by_node(placement_, ranks);
    const auto others = static_cast<double>(ranks.size() - 1);
    std::map<int, double> in_group;  // ranks by group of nodes
    for (const auto& [node, locals] : nodes) in_group[node / nodes_per_leaf_] += static_cast<double>(locals.size());
    for (const auto& [node, locals] : nodes) {
        const NodeTraffic& here = traffic(node, locals);
        const auto local = static_cast<double>(locals.size()), all = static_cast<double>(ranks.size());
        add(loads, node, here.pairs, 1 / others);
        if (nodes.size() == 1) continue;
        add_way(loads, node, here.leaving, local * (all - local) / others);
        add_way(loads, node, here.entering, local * (all - local) / others);
        const double outside = local * (all - in_group[node / nodes_per_leaf_]) / others;
        const std::vector<int> nics = all_nics(here);
        for (const int nic : nics)
            for (const bool is_up : {true, false})
                load_uplink(loads, leaf_of(node, nic), is_up, outside / static_cast<double>(nics.size()));
    }
    return merged(std::move(loads));
}

Loads Fabric::message(int from, int to) const {
    Loads loads;
    if (from == to) return loads;
    const int a = placement_.node_of(from), b = placement_.node_of(to);
    if (a == b) {
        add(loads, a, links_of(a).hop(placement_.local_of(from), placement_.local_of(to)), 1);
        return loads;
    }
    const int goal = placement_.local_of(to);
    int exit = placement_.local_of(from);
    const bool may_change_rail =
        rails_ > 1 && links_of(a).nics_of(exit) != links_of(b).nics_of(goal) && links_of(a).is_switched(exit);
    if (may_change_rail) {
        add(loads, a, links_of(a).hop(exit, goal), 1);
        exit = goal;
    }
    const NodeTraffic& sender = traffic(a, {exit});
    const NodeTraffic& receiver = traffic(b, {goal});
    add_way(loads, a, sender.leaving, 1);
    add_way(loads, b, receiver.entering, 1);
    load_crossing(loads, a, b, all_nics(sender), all_nics(receiver));
    return merged(std::move(loads));
}

}  // namespace lockstep::cost
