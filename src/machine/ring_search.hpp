// Edge-disjoint Hamiltonian cycles on a small multigraph.
#pragma once

#include <vector>

namespace lockstep::machine {

/// links[a][b]: physical links between GPUs a and b (symmetric, zero diagonal).
using LinkCounts = std::vector<std::vector<int>>;

/// Directed rings over all vertices such that no link is used more than once in each direction. Every undirected cycle
/// found is taken in both directions; two vertices share one ring per link, since it carries both ways. At most
/// min over a of sum over b of links[a][b] rings exist. Depth-first search that stops at that bound or after a fixed
/// number of steps, then returning the most it found; equal input gives equal rings. Empty when there is no cycle.
std::vector<std::vector<int>> find_directed_rings(const LinkCounts& links);

}  // namespace lockstep::machine
