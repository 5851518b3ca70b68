// From an experiment's point and a plan to step graphs.
#pragma once

#include <optional>

#include "experiment/experiment.hpp"
#include "machine/placement.hpp"
#include "plan/plan.hpp"
#include "plan/shortened.hpp"
#include "step/graph.hpp"

namespace lockstep::drive {

/// Builds the graph of a plan, or of the experiment's collective. Throws InputError for what can't be built.
step::StepGraph build_unchecked(const experiment::Experiment& experiment, const plan::Plan& plan,
                                const machine::Placement& placement);
/// Builds and checks the graph of a plan. Throws InputError also as step::check.
step::StepGraph build_graph(const experiment::Experiment& experiment, const plan::Plan& plan,
                            const machine::Placement& placement);

/// Two steps of fewer passes that tell the plan's by extrapolation.
struct ShortenedGraphs {
    plan::ShortenedPasses passes;
    step::StepGraph fewer, more;
};

/// Builds and checks both; none when the plan has too few passes for that. A host that may run ahead of its device by
/// several passes gets as many more. What is told so is exact to 1e-6 of the step time (records count nanoseconds);
/// under GPipe to 1e-3, as a host that is far ahead in the forward passes finds its limit at one pass or another.
std::optional<ShortenedGraphs> shorten(const experiment::Experiment& experiment, const plan::Plan& plan,
                                       const machine::Placement& placement);

}  // namespace lockstep::drive
