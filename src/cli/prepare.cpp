#include "cli/prepare.hpp"

#include "analysis/extrapolate.hpp"
#include "machine/catalog.hpp"
#include "step/liveness.hpp"

namespace lockstep::cli {

namespace {

/// The class that needs most.
step::MemoryUse most_memory(const step::StepGraph& graph) {
    step::MemoryUse most;
    for (const step::MemoryPlan& memory : step::measure_memory(graph))
        if (memory.peak.total > most.total) most = memory.peak;
    return most;
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

drive::MemoryOfMicroBatch memory_of(const experiment::Experiment& experiment, const plan::Plan& plan,
                                    const machine::Placement& placement) {
    return [&experiment, plan, placement](std::int64_t micro_batch) {
        plan::Plan other = plan;
        other.micro_batch = micro_batch;
        const auto with = [&](int passes) {
            return most_memory(drive::build_unchecked(experiment, plan::with_passes(other, passes), placement));
        };
        const auto passes = plan::shortened_passes(other);
        if (!passes) return with(other.accumulation);
        return analysis::extrapolate_passes(with(passes->fewer), with(passes->more), *passes);
    };
}

}  // namespace lockstep::cli
