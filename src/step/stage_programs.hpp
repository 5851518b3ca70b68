// What one rank of each pipeline stage issues in a step, and which ops of different stages belong together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// An op of a stage: its place in the stage's issue order.
struct StageOp {
    std::int32_t stage = 0;
    std::int32_t index = 0;
    auto operator<=>(const StageOp&) const = default;
};

/// Sets of ops that must run at the same time: a collective of several stages, or a send and its receive.
class Meetings {
public:
    void add(std::span<const StageOp> ops) {
        ops_.insert(ops_.end(), ops.begin(), ops.end());
        ends_.push_back(ops_.size());
    }
    std::size_t size() const { return ends_.size(); }
    std::span<const StageOp> of(std::size_t meeting) const {
        const std::size_t begin = meeting == 0 ? 0 : ends_[meeting - 1];
        return std::span(ops_).subspan(begin, ends_[meeting] - begin);
    }

private:
    std::vector<StageOp> ops_;
    std::vector<std::size_t> ends_;
};

struct StagePrograms {
    std::vector<std::vector<OpInstance>> of_class;  ///< in issue order
    std::vector<RankClassId> class_of;              ///< by stage
    Meetings meetings;

    std::int32_t stages() const { return static_cast<std::int32_t>(class_of.size()); }
    const std::vector<OpInstance>& ops(std::int32_t stage) const {
        return of_class[class_of[static_cast<std::size_t>(stage)].index()];
    }
    const OpInstance& instance(const StageOp& at) const { return ops(at.stage)[static_cast<std::size_t>(at.index)]; }
    const Op& op(const StageOp& at) const { return *instance(at).op; }
};

/// Unrolls the programs and pairs what crosses stages. Collectives of one communicator are paired by their place in the
/// order of each of its stages and must agree in name, kind, reduction, count and dtype; messages by their place
/// between two ranks on one communicator, and must agree in tag, count and dtype. Along axes other than pp all ranks
/// run the same program, so that a stage's own receive meets its send. Throws InputError naming the ops that don't
/// agree.
StagePrograms unroll(const StepGraph& graph);

}  // namespace lockstep::step
