// The parts of check_plan: each adds to `refusals` what of a plan this model can't be trained by.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"
#include "plan/plan.hpp"

namespace lockstep::plan {

using Refusals = std::vector<std::string>;

/// tp, sequence_parallel, async_tp.
void check_tensor_parallel(const Plan& plan, const model::Model& model, Refusals& refusals);
/// What is split along the sequence: sequence_parallel and cp.
void check_sequence(const Plan& plan, const model::Model& model, Refusals& refusals);
/// pp, vpp, schedule, stage_blocks.
void check_pipeline(const Plan& plan, const model::Model& model, Refusals& refusals);
/// ep, zero, recompute, and that something trains.
void check_state(const Plan& plan, const model::Model& model, Refusals& refusals);

/// Whether every input of the model is a sequence of ids.
bool is_over_tokens(const model::Model& model);
/// A layer that ends the sequence (FirstToken, or Flatten over tokens); null when there is none.
const model::Layer* end_of_sequence(const model::Model& model);

}  // namespace lockstep::plan
