// The ring channels a collective library can lay over the GPUs of one node.
#pragma once

#include <optional>
#include <vector>

#include "machine/route.hpp"

namespace lockstep::machine {

struct RingChannels {
    std::vector<std::vector<int>>
        rings;  ///< each: GPU indices in ring order; a channel per entry (both directions of a ring are two channels)
    Bandwidth per_channel;                 ///< one direction
    Proximity proximity = Proximity::sys;  ///< the farthest hop
    Bandwidth total() const {
        return static_cast<double>(rings.size()) * per_channel;
    }  ///< bus bandwidth of all channels together
};

/// Channels over the given GPUs (local indices, at least 2): as many edge-disjoint rings as the NVLink graph carries
/// (each NVLink is used once per direction), or one ring over PCIe and sockets at the narrowest shared link when NVLink
/// does not connect them all.
RingChannels find_rings(const Topology& topology, const std::vector<int>& gpus);

/// find_rings over all GPUs of the node; none on a node of one.
std::optional<RingChannels> rings_of_node(const Topology& topology);

}  // namespace lockstep::machine
