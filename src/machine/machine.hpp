// A machine: nodes with their devices, what connects them, and how much of it is reached.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "machine/calibration.hpp"
#include "machine/collective_choice.hpp"
#include "machine/device.hpp"
#include "machine/placement.hpp"
#include "machine/rings.hpp"
#include "machine/topology.hpp"

namespace lockstep::machine {

/// Between nodes, node by node in groups of nodes_per_leaf:
///   - without rails a leaf switch joins all NICs of its group. What its N nodes send to other leaves shares
///     N nics_per_node per_nic / oversubscription each way (1 = full bisection); what stays in the leaf is limited by
///     the NICs alone;
///   - with rails a group has a leaf for each NIC index: NIC i of all its nodes is on leaf i, which N per_nic /
///     oversubscription leave. Traffic from NIC i to NIC i of the group stays in the leaf, any other leaves it.
/// A leaf of one node (the default) makes `oversubscription` a divisor of each node's own rate.
struct Network {
    std::string name;
    Bandwidth per_nic;      ///< one direction
    int nics_per_node = 0;  ///< 0: as many as the node's topology has
    Seconds latency;        ///< one way, between two hosts
    double oversubscription = 1;
    std::vector<std::string> sources;
    int nodes_per_leaf = 1;
    bool has_rails = false;
};

/// Reads a network document; all errors go to `diagnostics`.
Network read_network(const config::Node& node, config::Diagnostics& diagnostics);

/// What the nodes of a machine may differ in.
struct NodeKind {
    Device device;
    Topology topology;
    Calibration calibration;
    /// Rates of its NICs by index, one direction; 0: missing. Empty: per_nic of the network each.
    std::vector<Bandwidth> nics;
};

/// Something of one node that is slow or missing.
struct NodeFault {
    int node = 0;
    std::string text;  ///< "gpu0-gpu1 nvlink at 12.5 of 25 GB/s"
};

struct Machine {
    std::string name;
    std::string title;
    Device device;  ///< this, node, calibration and nics are kind 0, that of the first node
    Topology node;
    int nodes = 1;
    std::optional<Network> network;  ///< present when nodes > 1
    Calibration calibration;
    std::vector<Bandwidth> nics = {};       ///< as NodeKind
    std::vector<NodeKind> more_kinds = {};  ///< kinds 1, 2 ..., numbered by their first node
    std::vector<int> kind_of_node = {};     ///< by node; empty: all are of kind 0
    ForcedCollectives forced = {};
    std::vector<NodeFault> faults = {};  ///< by node; what they change is in the kinds already
    std::vector<std::string> sources;
    std::vector<std::string> notes;
    std::filesystem::path file;

    /// What node number `of` has.
    const Device& device_of(int of) const { return device_of_kind(kind_of(of)); }
    const Topology& topology_of(int of) const { return kind_of(of) == 0 ? node : more(kind_of(of)).topology; }
    const Calibration& calibration_of(int of) const {
        return kind_of(of) == 0 ? calibration : more(kind_of(of)).calibration;
    }
    /// Rates of its NICs by index, one direction; 0: missing. As many as the network says, else as the node has; none
    /// without a network.
    std::vector<Bandwidth> nics_of(int of) const;
    /// Nodes of equal kind are alike in everything.
    int kind_of(int of) const { return kind_of_node.empty() ? 0 : kind_of_node[static_cast<std::size_t>(of)]; }
    int first_of_kind(int kind) const;
    int kinds() const { return 1 + static_cast<int>(more_kinds.size()); }
    const Device& device_of_kind(int kind) const { return kind == 0 ? device : more(kind).device; }

    int devices_per_node() const { return node.gpus(); }
    int devices() const { return nodes * devices_per_node(); }
    /// Ranks laid out node by node. Throws InputError when `ranks` is below 1 or above devices(), naming both and what
    /// to do.
    Placement place(int ranks) const;
    /// Of the devices that ranks of `placement` are on, the (first) one with the least memory.
    const Device& smallest_device(const Placement& placement) const;

private:
    const NodeKind& more(int kind) const { return more_kinds[static_cast<std::size_t>(kind - 1)]; }
};

/// The kinds of `machine`, in order.
std::vector<NodeKind> kinds_of(const Machine& machine);

/// Node i becomes kinds[of_node[i]]; `nodes` is their number. Kinds are numbered anew in the order of their first
/// nodes; those of no node are dropped.
void set_kinds(Machine& machine, const std::vector<NodeKind>& kinds, const std::vector<int>& of_node);

}  // namespace lockstep::machine
