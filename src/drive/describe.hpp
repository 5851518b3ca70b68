// What a run's file says of it before its first step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "machine/machine.hpp"
#include "record/run_description.hpp"
#include "step/executor.hpp"
#include "step/graph.hpp"

namespace lockstep::drive {

/// Fields that come from the experiment, its plan and its graph. `machine` is the one that is measured or simulated.
record::RunDescription describe_run(const experiment::Experiment& experiment, const step::StepGraph& graph,
                                    const machine::Machine& machine, record::Origin origin,
                                    const step::Executor& executor);

/// The name of a machine as an experiment writes it: "dgx-a100-40gb", "4x dgx-a100-80gb (ib-hdr-8)".
std::string machine_title(const config::Node& machine);

/// Mean peak rate of the ranks for the precision's math type, with "where it comes from"; nothing when one of their
/// devices has no such units.
struct PeakUsed {
    FlopRate rate;
    std::string source;
};
std::optional<PeakUsed> peak_for(const machine::Machine& machine, const machine::Placement& placement,
                                 Precision precision);

}  // namespace lockstep::drive
