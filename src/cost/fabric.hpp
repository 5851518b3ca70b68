// All links of the nodes that hold a world's ranks, and what each communication loads of them.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cost/node_traffic.hpp"

namespace lockstep::cost {

/// Links are numbered node by node, then the uplinks of leaf switches, up and down. A leaf joins
/// network.nodes_per_leaf nodes (with rails: the NICs of one index of them); its uplink carries what these NICs do
/// together over network.oversubscription. Between leaves there is no further limit.
class Fabric {
public:
    /// Both must outlive the fabric. Nodes of one kind share what is found out about them. Throws InputError when
    /// several nodes have no network, or one of them no NIC.
    Fabric(const machine::Machine& machine, const machine::Placement& placement);

    /// What transfers reach on each link together: the calibration's share of its rate.
    std::vector<Bandwidth> capacities() const;

    /// Ring channels through all ranks (ascending), node after node. Shares per byte that each rank sends.
    Loads ring(const std::vector<int>& ranks) const;
    /// Each rank to each other one.
    Loads all_to_all(const std::vector<int>& ranks) const;
    /// One byte from rank to rank. With rails and NVSwitches the byte leaves by a NIC of the rail it goes to.
    Loads message(int from, int to) const;

    /// Of the ranks of one node.
    const NodeTraffic& traffic(int node, const std::vector<int>& locals) const;
    /// What NICs, the way to them and uplinks let these ranks send from node to node in a ring when nobody else does,
    /// before any efficiency; 0 on one node.
    Bandwidth network_rate(const std::vector<int>& ranks) const;
    Bandwidth network_rate(int from, int to) const;  ///< of a message
    Bandwidth hop_rate(int node, int from, int to) const { return links_of(node).hop_rate(from, to); }
    bool has_uplinks() const { return !uplinks_.empty(); }

private:
    struct Leaf {
        int group = 0;  ///< of nodes
        int rail = 0;
    };
    Leaf leaf_of(int node, int nic) const;
    void load_uplink(Loads& loads, Leaf leaf, bool is_up, double share) const;
    void load_crossing(Loads& loads, int from, int to, const std::vector<int>& nics_out,
                       const std::vector<int>& nics_in) const;
    const NodeLinks& links_of(int node) const { return *links_of_kind_.at(machine_.kind_of(node)); }
    std::int32_t first_of(int node) const { return first_of_node_[static_cast<std::size_t>(node)]; }
    void add(Loads& to, int node, const Loads& loads, double times) const;
    void add_way(Loads& to, int node, const Loads& way, double times) const;
    Bandwidth narrowest(int node, const Loads& way) const;
    Bandwidth narrowest_uplink(const Loads& loads) const;

    const machine::Machine& machine_;
    const machine::Placement& placement_;
    std::map<int, std::unique_ptr<NodeLinks>> links_of_kind_;
    std::vector<std::int32_t> first_of_node_;  ///< and where the uplinks begin
    int nodes_per_leaf_ = 1;
    int rails_ = 1;
    std::vector<Bandwidth> uplinks_;  ///< by leaf; empty when they limit nothing
    mutable std::map<std::pair<int, std::vector<int>>, NodeTraffic> traffic_;  ///< by kind and local ranks
};

}  // namespace lockstep::cost
