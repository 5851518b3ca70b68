#include "cli/prepare.hpp"

#include "machine/catalog.hpp"
#include "step/builder.hpp"
#include "step/check.hpp"

namespace lockstep::cli {

namespace {

std::optional<step::Copy> input_copy(const experiment::Experiment& experiment, const plan::Plan& plan) {
    if (!experiment.input) return std::nullopt;
    step::Copy copy;
    copy.kind = step::Copy::Kind::input;
    copy.least_time =
        static_cast<double>(plan.micro_batch) * experiment.input->bytes_per_sample / experiment.input->rate;
    return copy;
}

}  // namespace

machine::Machine load_turned(const config::DataPath& data, const config::Node& node, const machine::Knobs& knobs) {
    config::Diagnostics diagnostics;
    machine::Machine machine = machine::load_machine(data, node, diagnostics);
    diagnostics.throw_if_any();
    return machine::apply_knobs(std::move(machine), knobs);
}

experiment::Experiment for_device(experiment::Experiment experiment, machine::DeviceKind kind) {
    if (kind == machine::DeviceKind::cpu) experiment.framework.memory_format = plan::MemoryFormat::packed;
    return experiment;
}

namespace {

step::StepGraph build(const experiment::Experiment& experiment, const plan::Plan& plan,
                      const machine::Placement& placement) {
    return step::build_step({.model = experiment.model,
                             .plan = plan,
                             .framework = experiment.framework,
                             .placement = placement,
                             .precision = experiment.precision,
                             .seed = experiment.seed,
                             .input = input_copy(experiment, plan)});
}

}  // namespace

drive::MemoryOfMicroBatch memory_of(const experiment::Experiment& experiment, const plan::Plan& plan,
                                    const machine::Placement& placement) {
    return [&experiment, plan, placement](std::int64_t micro_batch) {
        plan::Plan other = plan;
        other.micro_batch = micro_batch;
        step::MemoryUse most;
        for (const step::MemoryPlan& memory : step::measure_memory(build(experiment, other, placement)))
            if (memory.peak.total > most.total) most = memory.peak;
        return most;
    };
}

step::StepGraph build_graph(const experiment::Experiment& experiment, const plan::Plan& plan,
                            const machine::Placement& placement) {
    step::StepGraph graph = build(experiment, plan, placement);
    step::check(graph);
    return graph;
}

}  // namespace lockstep::cli
