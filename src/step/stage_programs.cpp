#include "step/stage_programs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/pair_messages.hpp"

namespace lockstep::step {

namespace {

bool crosses_stages(const Communicator& communicator) {
    return std::find(communicator.axes.begin(), communicator.axes.end(), plan::Axis::pp) != communicator.axes.end();
}

using CollectivesOf = std::vector<std::vector<StageOp>>;  // by stage

void check_equal(const StagePrograms& programs, const Communicator& communicator, const StageOp& a, const StageOp& b) {
    const Op& x = programs.op(a);
    const Op& y = programs.op(b);
    const auto& c = std::get<Collective>(x.kind);
    const auto& d = std::get<Collective>(y.kind);
    if (x.name == y.name && c.kind == d.kind && c.reduction == d.reduction && c.count == d.count && c.dtype == d.dtype)
        return;
    throw InputError(
        fmt::format("communicator {}: stage {} issues {} ({}, {} {}) where stage {} issues {} ({}, {} {}) (collectives "
                    "out of order or unequal); issue the same ones in the same order",
                    communicator.name, a.stage, x.name, kind_name(x), c.count, to_string(c.dtype), b.stage, y.name,
                    kind_name(y), d.count, to_string(d.dtype)));
}

bool takes_part(const Communicator& communicator, std::int32_t stage) {
    return communicator.stages.empty() ||
           std::binary_search(communicator.stages.begin(), communicator.stages.end(), stage);
}

/// Of a communicator along pp: each of its stages issues the same collectives, and no other stage any.
void pair_collectives(const Communicator& communicator, const CollectivesOf& of, StagePrograms& programs) {
    std::size_t most = 0;
    for (const auto& ops : of) most = std::max(most, ops.size());
    std::vector<StageOp> meeting;
    for (std::size_t k = 0; k < most; ++k) {
        meeting.clear();
        std::int32_t absent = -1;
        for (std::int32_t stage = 0; stage < programs.stages(); ++stage) {
            const auto& ops = of[static_cast<std::size_t>(stage)];
            if (k < ops.size())
                meeting.push_back(ops[k]);
            else if (takes_part(communicator, stage))
                absent = stage;
        }
        for (const StageOp& at : meeting)
            if (!takes_part(communicator, at.stage))
                throw InputError(fmt::format(
                    "communicator {}: stage {} issues {} but takes no part in it (stages {} "
                    "do); leave it out there",
                    communicator.name, at.stage, programs.op(at).name, fmt::join(communicator.stages, ", ")));
        const StageOp& first = meeting.front();
        if (absent >= 0)
            throw InputError(
                fmt::format("communicator {}: stage {} issues {} but stage {} issues nothing to match it; "
                            "issue it on all",
                            communicator.name, first.stage, programs.op(first).name, absent));
        for (const StageOp& other : meeting) check_equal(programs, communicator, first, other);
        programs.meetings.add(meeting);
    }
}

void pair_collectives(const StepGraph& graph, StagePrograms& programs) {
    std::vector<CollectivesOf> of(graph.communicators.size());
    for (std::size_t c = 0; c < of.size(); ++c)
        if (crosses_stages(graph.communicators[c])) of[c].resize(static_cast<std::size_t>(programs.stages()));
    for (std::int32_t stage = 0; stage < programs.stages(); ++stage) {
        const std::vector<OpInstance>& ops = programs.ops(stage);
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const auto* collective = std::get_if<Collective>(&ops[i].op->kind);
            if (!collective || of[collective->communicator.index()].empty()) continue;
            of[collective->communicator.index()][static_cast<std::size_t>(stage)].push_back(
                {stage, static_cast<std::int32_t>(i)});
        }
    }
    for (std::size_t c = 0; c < of.size(); ++c) pair_collectives(graph.communicators[c], of[c], programs);
}

}  // namespace

StagePrograms unroll(const StepGraph& graph) {
    StagePrograms programs;
    programs.class_of = graph.class_of_stage;
    for (const RankClass& rank_class : graph.classes) {
        std::size_t count = 0;
        for (const Issue& issue : rank_class.program.issues) count += graph.block(issue.block).ops.size();
        auto& ops = programs.of_class.emplace_back();
        ops.reserve(count);
        for_each_op(graph, rank_class.program, [&](const OpInstance& op) { ops.push_back(op); });
    }
    pair_collectives(graph, programs);
    pair_messages(graph, programs);
    return programs;
}

}  // namespace lockstep::step
