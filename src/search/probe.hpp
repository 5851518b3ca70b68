// What the passes, the synchronisation and the memory of one pipeline stage cost, read off a small simulated step.
#pragma once

#include <vector>

#include "base/units.hpp"
#include "plan/plan.hpp"
#include "search/stage_memory.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// Of one micro-batch, in the middle of an accumulation.
struct PassProbe {
    Seconds forward, backward;                  ///< from first to last op, without messages between stages
    Seconds early;                              ///< of backward, what needs nothing from the next stage (recomputation)
    Seconds forward_compute, backward_compute;  ///< of it, kernels
    Seconds recomputed;                         ///< of backward_compute, the forward pass once more
};

/// Once a step.
struct StepProbe {
    Seconds sync;          ///< gradients' collectives, one behind the other
    Seconds sync_compute;  ///< copies and casts around them
    Seconds optimizer;
    Seconds gather;        ///< parameters' collectives before the first pass
    Seconds first_gather;  ///< of it, before the first op can run
};

struct StageProbe {
    PassProbe pass;
    StepProbe step;
    StageMemory memory;
    Bytes message;  ///< to the next stage
};

enum class Measured { fixed_memory, all_memory };

/// Builds the plan's graph, simulates two steps and measures its memory. One entry for each stage. The plan needs three
/// passes or more.
std::vector<StageProbe> probe(const Subject& subject, const experiment::Experiment& small, const plan::Plan& plan,
                              Measured measured);

}  // namespace lockstep::search
