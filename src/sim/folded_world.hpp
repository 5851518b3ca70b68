// All that an engine needs to know of a world: its groups of like ranks, their tapes, the links they share.
#pragma once

#include <vector>

#include "machine/variation.hpp"
#include "sim/folding.hpp"
#include "sim/tape.hpp"

namespace lockstep::sim {

struct FoldedWorld {
    Likeness likeness;
    Traffic traffic;  ///< who communicates with whom
    Folding folding;
    std::vector<Tape> tapes;  ///< by kind of rank

    const Tape& tape(const RankGroup& group) const { return tapes[static_cast<std::size_t>(group.kind)]; }
    std::vector<std::vector<std::int64_t>> members_of_shape;  ///< by group and shape
    /// How many of the communicator's ranks the group stands for.
    std::int64_t members(std::int32_t group, std::int32_t shape) const {
        return members_of_shape[static_cast<std::size_t>(group)][static_cast<std::size_t>(shape)];
    }
};

/// Throws as make_tape and speed_profiles.
FoldedWorld fold_world(const step::StepGraph& graph, const step::Durations& durations, Seconds host_per_op,
                       const machine::Variation& variation, Fold how);

}  // namespace lockstep::sim
