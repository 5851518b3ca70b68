// What commands ask of an experiment's point before its graph is used.
#pragma once

#include "drive/build.hpp"
#include "drive/memory_fit.hpp"
#include "experiment/experiment.hpp"
#include "machine/device.hpp"
#include "machine/placement.hpp"
#include "plan/plan.hpp"

namespace lockstep::cli {

/// The machine that `node` describes, as the knobs of an experiment turn it; not the host. Throws InputError.
machine::Machine load_turned(const config::DataPath& data, const config::Node& node, const machine::Knobs& knobs);
using drive::build_graph;

/// The experiment as a device of `kind` carries it out: CPU libraries want packed weights.
experiment::Experiment for_device(experiment::Experiment experiment, machine::DeviceKind kind);

/// What a rank needs most when the plan's passes take other micro-batches; for drive::largest_micro_batch. Empty for a
/// collective, which has none.
drive::MemoryOfMicroBatch memory_of(const experiment::Experiment& experiment, const plan::Plan& plan,
                                    const machine::Placement& placement);

}  // namespace lockstep::cli
