// What the memory of a pipeline stage consists of: what is always there, what each pass keeps, and what comes and goes.
#pragma once

#include <vector>

#include "base/units.hpp"
#include "step/graph.hpp"

namespace lockstep::search {

struct StageMemory {
    Bytes fixed;      ///< parameters, gradients, optimizer: what lives through the passes of a step
    Bytes kept;       ///< by each pass between its forward and its backward pass
    Bytes transient;  ///< at the peak, beyond fixed and the passes in flight: the pass at work, and with ZeRO 2 and 3
                      ///< the gradients and parameters under way
};

/// One entry for each stage of a graph all of whose passes are in flight at once (GPipe), or of a single stage (whose
/// one pass counts as transient).
std::vector<StageMemory> stage_memory(const step::StepGraph& graph);
/// Fixed and kept alone, which takes no look at lives.
std::vector<StageMemory> fixed_memory(const step::StepGraph& graph);

}  // namespace lockstep::search
