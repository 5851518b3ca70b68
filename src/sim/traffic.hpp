// Every communication of a world and the links it loads, before ranks are folded.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/likeness.hpp"
#include "sim/shapes.hpp"
#include "step/durations.hpp"

namespace lockstep::sim {

/// One communicator's collectives of a shape, or one rank's messages of it.
struct Instance {
    std::int32_t shape = 0;
    bool is_collective = true;
    std::vector<std::int32_t> ranks;  ///< members; of messages the rank, then its peers in order
    std::vector<step::LinkLoad> loads;

    /// Those that carry it out: all members, or the one rank.
    std::size_t carriers() const { return is_collective ? ranks.size() : 1; }
};

struct Traffic {
    std::vector<Bandwidth> links;
    std::vector<Instance> instances;
    std::vector<std::vector<std::int32_t>> instance_of;  ///< by shape and rank; -1: takes no part

    std::int32_t instance(std::int32_t shape, int rank) const {
        return instance_of[static_cast<std::size_t>(shape)][static_cast<std::size_t>(rank)];
    }
};

/// All instances of the shapes. Loads are asked for only where `durations` knows links.
Traffic find_traffic(const step::StepGraph& graph, const Shapes& shapes, const step::Durations& durations);

/// Drops the loads of links that can't be full: that all instances on them together, each at the most it ever reaches
/// alone (`most_rate`, by kind of rank and shape), don't fill.
void drop_idle_links(Traffic& traffic, const Likeness& likeness, const std::vector<std::vector<Bandwidth>>& most_rate);

}  // namespace lockstep::sim
