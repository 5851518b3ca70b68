// What a plan makes of a step: its ops, messages and memory, as text and as JSON.
#pragma once

#include <string>

#include "config/json.hpp"
#include "step/graph.hpp"
#include "step/liveness.hpp"

namespace lockstep::report {

/// For each class of ranks: what it issues, work by phase and kind of op, everything it sends, memory by category.
std::string format_plan(const step::StepGraph& graph, const step::MemoryPlan& memory);

/// The same as an object: name, mesh, batch, classes[{name, multiplicity, issues, work[], communication[]}],
/// memory_bytes_per_rank, arena_bytes, peak_op. `memory` is of the first class.
config::Json plan_json(const step::StepGraph& graph, const step::MemoryPlan& memory);

}  // namespace lockstep::report
