#include "search/simulate_plan.hpp"

#include "analysis/analyze.hpp"
#include "analysis/extrapolate.hpp"
#include "drive/build.hpp"
#include "drive/describe.hpp"
#include "drive/predict.hpp"
#include "drive/shortened_memory.hpp"
#include "sim/sim_executor.hpp"

namespace lockstep::search {

namespace {

analysis::RunFindings simulate(const Subject& subject, const step::StepGraph& graph) {
    const machine::Placement& placement = subject.placement;
    sim::SimExecutor executor(subject.costs,
                              {.device = subject.machine.device.name,
                               .host_per_op = subject.costs.host_per_op(),
                               .seed = subject.experiment.seed,
                               .variation = subject.experiment.variation.within(placement.ranks, placement.nodes())});
    executor.prepare(graph);
    record::RunDescription run =
        drive::describe_run(subject.experiment, graph, subject.machine, record::Origin::predicted, executor);
    run.warmup_steps = 1;
    run.planned_steps = 2;
    return analysis::analyze_records(run, graph, drive::collect_steps(executor, run.planned_steps));
}

}  // namespace

analysis::RunFindings simulate_plan(const Subject& subject, const plan::Plan& plan, Length length) {
    const bool is_told_whole = length == Length::whole || subject.experiment.variation.is_changing();
    const auto shortened = is_told_whole ? std::nullopt : drive::shorten(subject.experiment, plan, subject.placement);
    if (!shortened) return simulate(subject, drive::build_graph(subject.experiment, plan, subject.placement));
    auto findings = analysis::extrapolate_passes(simulate(subject, shortened->fewer),
                                                 simulate(subject, shortened->more), shortened->passes);
    findings.memory = drive::most_of(drive::shortened_memory(shortened->more, shortened->passes));
    return findings;
}

}  // namespace lockstep::search
