// Pairs the sends and receives of all pipeline stages.
#pragma once

#include "step/stage_programs.hpp"

namespace lockstep::step {

/// Adds a meeting for each message. Throws InputError for one without another end, or whose ends differ in tag, count
/// or dtype.
void pair_messages(const StepGraph& graph, StagePrograms& programs);

}  // namespace lockstep::step
