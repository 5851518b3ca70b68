// What one rank of each pipeline stage issues in a step, and which ops of different stages belong together.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// An op of a stage: its place in the stage's issue order.
struct StageOp {
    std::int32_t stage = 0;
    std::int32_t index = 0;
    auto operator<=>(const StageOp&) const = default;
};

/// Ops that must run at the same time: a collective of several stages, or a send and its receive.
struct Meeting {
    std::vector<StageOp> ops;
};

struct StagePrograms {
    std::vector<std::vector<OpInstance>> of_class;  ///< in issue order
    std::vector<RankClassId> class_of;              ///< by stage
    std::vector<Meeting> meetings;

    std::int32_t stages() const { return static_cast<std::int32_t>(class_of.size()); }
    const std::vector<OpInstance>& ops(std::int32_t stage) const {
        return of_class[class_of[static_cast<std::size_t>(stage)].index()];
    }
    const Op& op(const StageOp& at) const { return *ops(at.stage)[static_cast<std::size_t>(at.index)].op; }
};

/// Unrolls the programs and pairs what crosses stages. Collectives of one communicator are paired by their place in the
/// order of each stage and must agree in name, kind, reduction, count and dtype; messages by their place between two
/// ranks, and must agree in tag, count and dtype. Along axes other than pp all ranks run the same program, so that a
/// stage's own receive meets its send. Throws InputError naming the ops that don't agree.
StagePrograms unroll(const StepGraph& graph);

}  // namespace lockstep::step
