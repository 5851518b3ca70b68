// Makes the step graph of a model under a plan.
#pragma once

#include <optional>

#include "machine/placement.hpp"
#include "model/model.hpp"
#include "plan/framework.hpp"
#include "plan/plan.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

struct BuildInput {
    const model::Model& model;
    const plan::Plan& plan;
    const plan::Framework& framework;
    machine::Placement placement;
    Precision precision = Precision::fp32;
    std::uint64_t seed = 1;
    std::optional<Copy> input;  ///< the data pipeline's copy per micro-batch, when the experiment has one
};

/// Forward, backward (gradients of each parameter when its last use is done), gradient buckets in reverse order (first
/// 1 MiB, then 25 MiB, launched when their last gradient exists), optimizer. Never looks at a machine. Throws
/// InputError for what can't be built.
StepGraph build_step(const BuildInput& input);

}  // namespace lockstep::step
