#include "cli/prepare.hpp"

#include "drive/shortened_memory.hpp"

namespace lockstep::cli {

experiment::Experiment for_device(experiment::Experiment experiment, machine::DeviceKind kind) {
    if (kind == machine::DeviceKind::cpu) experiment.framework.memory_format = plan::MemoryFormat::packed;
    return experiment;
}

drive::MemoryOfMicroBatch memory_of(const experiment::Experiment& experiment, const plan::Plan& plan,
                                    const machine::Placement& placement) {
    if (experiment.collective) return {};
    return [&experiment, plan, placement](std::int64_t micro_batch) {
        plan::Plan other = plan;
        other.micro_batch = micro_batch;
        return drive::most_memory(experiment, other, placement);
    };
}

}  // namespace lockstep::cli
