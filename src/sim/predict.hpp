// A prediction in one call.
#pragma once

#include <vector>

#include "sim/sim_executor.hpp"

namespace lockstep::sim {

/// Simulates `steps` steps (at least 1; InputError otherwise) that follow one another without a barrier, two in flight
/// as in a real run. Records by step, then by simulated rank.
std::vector<step::StepRecord> predict(const step::StepGraph& graph, const step::Durations& durations, int steps,
                                      const SimOptions& options = {});

}  // namespace lockstep::sim
