// The single keys of an experiment: each function reads one, or a few that belong together, and reports what is wrong
// with it to the object's diagnostics.
#pragma once

#include <optional>
#include <vector>

#include "config/document.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::experiment {

Precision read_precision(config::Object& object);
/// The form only: a name, a file, or a cluster (machine/cluster_form.hpp). Which machines there are is known where one
/// is needed (a run doesn't need the one it intends).
config::Node read_machine(config::Object& object);
/// A count or a list of different counts, each from 1 to plan::max_ranks.
std::vector<int> read_ranks(config::Object& object);
/// batch_per_rank or global_batch, exactly one, and accumulation where it is given.
plan::BatchRequest read_batch(config::Object& object);
/// {bytes_per_sample, rate}, both above 0; none when absent.
std::optional<InputPipeline> read_input(config::Object& object);
plan::Optimizer read_optimizer(config::Object& object, plan::Optimizer fallback);

}  // namespace lockstep::experiment
