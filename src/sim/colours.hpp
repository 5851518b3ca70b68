// Colour refinement over ranks, communications and links.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/likeness.hpp"
#include "sim/traffic.hpp"

namespace lockstep::sim {

using Colour = std::uint64_t;

struct Colours {
    std::vector<Colour> of_rank;
    std::vector<Colour> of_instance;
    std::vector<Colour> of_link;
};

/// The coarsest colours that refine the ranks' kinds and don't split any more. A colour is a 64-bit hash of what it was
/// made of: two of n different ones agree by chance with probability n^2 / 2^65. With `are_ranks_apart` each rank
/// begins with a colour of its own.
Colours refine(const Shapes& shapes, const Likeness& likeness, const Traffic& traffic, bool are_ranks_apart);

}  // namespace lockstep::sim
