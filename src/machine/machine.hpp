// A machine: nodes of equal devices, what connects them, and how much of it is reached.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "machine/calibration.hpp"
#include "machine/device.hpp"
#include "machine/placement.hpp"
#include "machine/rings.hpp"
#include "machine/topology.hpp"

namespace lockstep::machine {

/// Between nodes. The rate of a node is nics_per_node * per_nic, divided by `oversubscription` (1 = full bisection).
struct Network {
    std::string name;
    Bandwidth per_nic;      ///< one direction
    int nics_per_node = 0;  ///< 0: as many as the node's topology has
    Seconds latency;        ///< one way, between two hosts
    double oversubscription = 1;
    std::vector<std::string> sources;
};

/// Reads a network document; all errors go to `diagnostics`.
Network read_network(const config::Node& node, config::Diagnostics& diagnostics);

struct Machine {
    std::string name;
    std::string title;
    Device device;
    Topology node;
    int nodes = 1;
    std::optional<Network> network;  ///< present when nodes > 1
    Calibration calibration;
    std::vector<std::string> sources;
    std::vector<std::string> notes;
    std::filesystem::path file;

    /// What node number `of` has; all nodes are alike as yet.
    const Device& device_of(int of) const { return (void)of, device; }
    const Topology& topology_of(int of) const { return (void)of, node; }
    const Calibration& calibration_of(int of) const { return (void)of, calibration; }
    /// Nodes of equal kind are alike in everything.
    int kind_of(int of) const { return (void)of, 0; }

    int devices_per_node() const { return node.gpus(); }
    int devices() const { return nodes * devices_per_node(); }
    /// Ranks laid out node by node. Throws InputError when `ranks` is below 1 or above devices(), naming both and what
    /// to do.
    Placement place(int ranks) const;
};

}  // namespace lockstep::machine
