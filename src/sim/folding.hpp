// Which ranks are simulated, and for whom they stand.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/likeness.hpp"
#include "sim/link_share.hpp"
#include "sim/traffic.hpp"
#include "step/graph.hpp"

namespace lockstep::sim {

/// Ranks that behave alike; its representative is simulated for all of them.
struct RankGroup {
    step::RankClassId rank_class;
    std::int32_t kind = 0;  ///< of Likeness
    int representative = 0;
    std::int64_t multiplicity = 1;
};

struct Folding {
    std::vector<RankGroup> groups;
    std::vector<std::int32_t> group_of_rank;
    std::vector<Bandwidth> links;  ///< of each class of links one
    /// By group and shape: what the communications of the whole class that the representative's belongs to do to these
    /// links together.
    std::vector<std::vector<std::vector<LinkUse>>> uses;

    std::int32_t group(int rank) const { return group_of_rank[static_cast<std::size_t>(rank)]; }
    /// The groups of these ranks, ascending, each once.
    std::vector<std::int32_t> groups_of(const std::vector<std::int32_t>& ranks) const;
};

enum class Fold { alike, none };  ///< none: every rank is simulated

/// Colour refinement over ranks, their communications and the links these load (Weisfeiler and Leman 1968; the coarsest
/// equitable partition, as Paige and Tarjan 1987 and Grohe et al. 2014 use it to fold linear programs): ranks begin
/// with the colour of their kind, a communication takes the colours of its ranks and links, a link those of the
/// communications on it, a rank those of its communications, until nothing splits any more. Ranks of one colour then
/// wait for the same, share links alike, and do the same at the same time, so one of them tells all.
Folding fold(const step::StepGraph& graph, const Shapes& shapes, const Likeness& likeness, const Traffic& traffic,
             Fold how);

}  // namespace lockstep::sim
