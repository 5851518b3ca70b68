#include "drive/build.hpp"

#include <algorithm>
#include <utility>

#include "step/builder.hpp"
#include "step/check.hpp"
#include "step/collective_step.hpp"

namespace lockstep::drive {

namespace {

std::optional<step::Copy> input_copy(const experiment::Experiment& experiment, const plan::Plan& plan) {
    if (!experiment.input) return std::nullopt;
    step::Copy copy;
    copy.kind = step::Copy::Kind::input;
    copy.least_time =
        static_cast<double>(plan.micro_batch) * experiment.input->bytes_per_sample / experiment.input->rate;
    return copy;
}

/// Passes that make up the ops a host may be ahead by, on the rank that issues the fewest a pass.
int passes_ahead(const step::StepGraph& graph) {
    std::int64_t fewest = INT64_MAX;
    for (const step::RankClass& rank_class : graph.classes) {
        std::int64_t ops = 0;
        step::for_each_op(graph, rank_class.program, [&](const step::OpInstance&) { ++ops; });
        fewest = std::min(fewest, std::max<std::int64_t>(1, ops / graph.micro_batches));
    }
    return static_cast<int>((graph.run_ahead + fewest - 1) / fewest);
}

}  // namespace

step::StepGraph build_unchecked(const experiment::Experiment& experiment, const plan::Plan& plan,
                                const machine::Placement& placement) {
    if (const auto& collective = experiment.collective)
        return step::build_collective(collective->kind, collective->bytes, collective->dtype, placement);
    return step::build_step({.model = experiment.model,
                             .plan = plan,
                             .framework = experiment.framework,
                             .placement = placement,
                             .precision = experiment.precision,
                             .seed = experiment.seed,
                             .input = input_copy(experiment, plan)});
}

step::StepGraph build_graph(const experiment::Experiment& experiment, const plan::Plan& plan,
                            const machine::Placement& placement) {
    step::StepGraph graph = build_unchecked(experiment, plan, placement);
    step::check(graph);
    return graph;
}

std::optional<ShortenedGraphs> shorten(const experiment::Experiment& experiment, const plan::Plan& plan,
                                       const machine::Placement& placement) {
    std::optional<plan::ShortenedPasses> passes = plan::shortened_passes(plan);
    if (!passes) return std::nullopt;
    const auto with = [&](int count) { return build_graph(experiment, plan::with_passes(plan, count), placement); };
    step::StepGraph fewer = with(passes->fewer);
    // Under GPipe a pass has its ops in two halves, each with a steady state of its own.
    const int times = plan.mesh.pp > 1 && plan.split.schedule == plan::Schedule::gpipe ? 4 : 2;
    if (const int ahead = times * passes_ahead(fewer); passes->fewer < ahead) {
        passes = plan::shortened_passes(plan, ahead);
        if (!passes) return std::nullopt;
        fewer = with(passes->fewer);
    }
    return ShortenedGraphs{*passes, std::move(fewer), with(passes->more)};
}

}  // namespace lockstep::drive
