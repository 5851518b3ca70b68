// What carries the traffic of a communicator on a machine: its channels in the node, its share of the network.
#pragma once

#include <tuple>
#include <vector>

#include "cost/nccl_offer.hpp"
#include "machine/machine.hpp"

namespace lockstep::cost {

/// Rates are of one direction.
struct Wires {
    int ranks = 1;
    int nodes = 1;
    int local_ranks = 1;               ///< on the node that has most of them
    Bandwidth channels;                ///< all ring channels inside a node together; 0 when a node has one rank of it
    Bandwidth network;                 ///< of one node, for this communicator; 0 inside one node
    Seconds network_latency;           ///< one way
    double pair_seconds_per_byte = 0;  ///< time to move one byte from each local rank to each other one, over the links
    NcclOffer offer = {};              ///< of its nodes together
};

/// Wires of the communicator made of `ranks` (world ranks, ascending).
/// channels: machine::find_rings over the GPUs of the fullest node. network: a node has nics_per_node per_nic /
/// oversubscription, of which this communicator gets local ranks / ranks per node (the sibling communicators of a mesh
/// do the same at the same time), at most the PCIe rate of its GPUs.
/// Throws InputError when the ranks need a network and the machine has none, or when the network has no NICs.
Wires find_wires(const machine::Machine& machine, const machine::Placement& placement, const std::vector<int>& ranks);

/// The share of the network one rank has when all ranks of its node send. Throws as find_wires.
Bandwidth network_share(const machine::Machine& machine, const machine::Placement& placement, int local_ranks);

/// How ranks lie on their nodes: the local indices of the fullest node, the count on the emptiest, nodes and ranks.
/// Ranks with equal placings have equal wires.
using Placing = std::tuple<std::vector<int>, int, int, int>;
Placing placing_of(const machine::Placement& placement, const std::vector<int>& ranks);

}  // namespace lockstep::cost
