// Paths through a node and the matrix of proximities.
#pragma once

#include <vector>

#include "machine/topology.hpp"

namespace lockstep::machine {

struct Route {
    std::vector<LinkId> links;  ///< in order from source to destination; empty for a vertex to itself
    Bandwidth bandwidth;        ///< of the narrowest link, one direction
    Proximity proximity = Proximity::sys;
    int nvlinks = 0;  ///< direct NVLinks between two GPUs (through switches: those of the GPU)
};

/// Best route between two vertices: NVLink direct or through NVSwitch first, else the shortest over PCIe and sockets.
/// Never forwards through another GPU. Throws RuntimeError when there is none.
Route find_route(const Topology& topology, VertexId from, VertexId to);

}  // namespace lockstep::machine
