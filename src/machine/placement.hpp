// Ranks per node: all that a step graph needs to know of a machine.
#pragma once

namespace lockstep::machine {

struct Placement {
    int ranks = 1;
    int ranks_per_node = 1;

    int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
    int node_of(int rank) const { return rank / ranks_per_node; }
    int local_of(int rank) const { return rank % ranks_per_node; }
};

}  // namespace lockstep::machine
