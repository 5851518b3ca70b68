// Which ranks have equal programs, durations and speeds: one tape serves them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "machine/variation.hpp"
#include "sim/shapes.hpp"
#include "step/durations.hpp"

namespace lockstep::sim {

/// Speed of a rank's kernels from some moment on.
struct SpeedStep {
    Picoseconds from;
    double speed = 1;
    auto operator<=>(const SpeedStep&) const = default;
};
using SpeedProfile = std::vector<SpeedStep>;  ///< ascending; empty: always 1

/// By rank. Where several entries name a rank their speeds multiply. Throws InputError for a rank or node that the
/// world hasn't, and for speeds that aren't above 0.
std::vector<SpeedProfile> speed_profiles(const machine::Variation& variation, const machine::Placement& placement);

struct RankKind {
    step::RankClassId rank_class;
    int example = 0;  ///< the lowest of its ranks
    SpeedProfile speeds;
};

struct Likeness {
    std::vector<RankKind> kinds;
    std::vector<std::int32_t> kind_of_rank;

    std::size_t kind(int rank) const { return static_cast<std::size_t>(kind_of_rank[static_cast<std::size_t>(rank)]); }
};

Likeness find_likeness(const step::StepGraph& graph, const Shapes& shapes, const step::Durations& durations,
                       std::vector<SpeedProfile> speeds);

}  // namespace lockstep::sim
