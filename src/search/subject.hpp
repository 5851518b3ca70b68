// What is searched for: a model in training on a world of ranks, whatever its plan.
#pragma once

#include "cost/cost_model.hpp"
#include "experiment/experiment.hpp"
#include "machine/machine.hpp"
#include "machine/placement.hpp"

namespace lockstep::search {

/// All of it must outlive who uses it. `costs` are of the machine and the placement; they may be asked by several
/// threads.
struct Subject {
    const experiment::Experiment& experiment;
    const machine::Machine& machine;
    machine::Placement placement;
    const cost::CostModel& costs;
};

}  // namespace lockstep::search
