// What must hold of a node's topology before anything is computed on it.
#pragma once

#include <string>
#include <vector>

#include "machine/device.hpp"
#include "machine/topology.hpp"

namespace lockstep::machine {

/// Whether a link of this kind can join vertices of these kinds, in either order.
bool can_join(LinkKind kind, VertexKind a, VertexKind b);

/// Whether traffic of one GPU reaches the other.
bool has_route(const Topology& topology, int a, int b);

/// One text for each broken rule: a vertex without links, more NVLinks at a GPU than `device` has, a pair of GPUs
/// without a route.
std::vector<std::string> find_faults(const Topology& topology, const Device& device);

}  // namespace lockstep::machine
