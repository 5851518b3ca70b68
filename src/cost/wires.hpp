// What carries the traffic of a communicator on a machine: its channels in the node, its share of the network.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "cost/fabric.hpp"
#include "cost/nccl_offer.hpp"

namespace lockstep::cost {

/// Rates are of one direction, of the communicator alone: what other transfers on the same links leave of them is for
/// the simulator to say.
struct Wires {
    int ranks = 1;
    int nodes = 1;
    int local_ranks = 1;               ///< on the node that has most of them
    Bandwidth channels;                ///< all ring channels inside a node together; 0 when a node has one rank of it
    Bandwidth network;                 ///< of one node, for this communicator; 0 inside one node
    Seconds network_latency;           ///< one way
    double pair_seconds_per_byte = 0;  ///< time to move one byte from each local rank to each other one, over the links
    NcclOffer offer = {};              ///< of its nodes together
    int slowest_node = 0;  ///< whose calibration counts: the first of the kind with the least channel rate reached
    bool operator==(const Wires&) const = default;
};

/// Wires of the communicator made of `ranks` (world ranks, ascending): those of the node that does worst.
/// channels: machine::find_rings over its GPUs there. network: Fabric::network_rate.
/// Throws InputError when the ranks need a network and the machine has none, or when the network has no NICs.
Wires find_wires(const Fabric& fabric, const machine::Machine& machine, const machine::Placement& placement,
                 const std::vector<int>& ranks);
Wires find_wires(const machine::Machine& machine, const machine::Placement& placement, const std::vector<int>& ranks);

/// How ranks lie on their nodes: the kinds of node with the local indices there, each once; nodes and ranks.
/// Without uplinks, ranks with equal placings have equal wires.
using Placing = std::tuple<std::vector<std::pair<int, std::vector<int>>>, int, int>;
Placing placing_of(const machine::Machine& machine, const machine::Placement& placement, const std::vector<int>& ranks);

/// What carries a message from one rank to another; of equal ones the times are equal.
struct MessageWire {
    bool is_between_nodes = false;
    Bandwidth rate;  ///< one direction, alone, before any efficiency
    int sender_kind = 0;
    bool operator==(const MessageWire&) const = default;
};
MessageWire find_message_wire(const Fabric& fabric, const machine::Machine& machine,
                              const machine::Placement& placement, int from, int to);

}  // namespace lockstep::cost
