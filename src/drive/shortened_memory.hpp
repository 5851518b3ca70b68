// The memory of a step of many passes, measured on a step of fewer.
#pragma once

#include <vector>

#include "experiment/experiment.hpp"
#include "machine/placement.hpp"
#include "plan/plan.hpp"
#include "plan/shortened.hpp"
#include "step/liveness.hpp"

namespace lockstep::drive {

/// By class of ranks. `graph` has `passes.more` passes; each further one adds a copy of every tensor that has one for
/// each pass: inputs, and under GPipe all that waits for the backward pass. Exact once the pipeline is full.
std::vector<step::MemoryPlan> shortened_memory(const step::StepGraph& graph, const plan::ShortenedPasses& passes);

/// Of the class that needs most; of a shorter step when the plan has many passes.
step::MemoryUse most_memory(const experiment::Experiment& experiment, const plan::Plan& plan,
                            const machine::Placement& placement);

/// The one that needs most.
step::MemoryUse most_of(const std::vector<step::MemoryPlan>& classes);

}  // namespace lockstep::drive
