// Which ranks are simulated, and for whom they stand.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::sim {

/// Ranks that behave alike; its representative is simulated for all of them.
struct RankGroup {
    step::RankClassId rank_class;
    int representative = 0;
    std::int64_t multiplicity = 1;
};

struct Folding {
    std::vector<RankGroup> groups;
    std::vector<std::int32_t> group_of_rank;

    /// The groups that the members of `rank`'s communicator belong to, ascending, each once.
    std::vector<std::int32_t> groups_of(const plan::Mesh& mesh, int rank, const step::Communicator& communicator) const;
};

/// One group for each pipeline stage: on equal devices and links, ranks of a stage do the same at the same time.
/// (Stages may share a program, but not its timing.)
Folding fold_by_stage(const step::StepGraph& graph);

}  // namespace lockstep::sim
