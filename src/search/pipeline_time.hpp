// A pipeline's passes and messages in time, as a recurrence over stages and slots.
#pragma once

#include <vector>

#include "base/units.hpp"
#include "plan/pipeline.hpp"

namespace lockstep::search {

/// What one stage's passes take.
struct StageTimes {
    std::vector<Seconds> forward, backward;  ///< by chunk of the stage
    std::vector<Seconds> early;              ///< of backward, what is done before a message is needed
    Seconds message;                         ///< to the next stage (of the last: to the first) and back
};

/// When a stage begins its first pass and ends its last one.
struct StageExtent {
    Seconds begin, end;
};

/// Each stage carries out the slots of plan::pipeline_order one after the other. Between passes a stage exchanges, on
/// one stream for each direction: it sends what the last pass of that direction left and receives what the next one
/// needs, as one op, which begins when its pass is done and the op before it, ends max(message times) after it and its
/// counterparts have begun. A pass begins when the one before it on its stage is done, and goes on after its early part
/// when what it receives is there. `passes`
/// micro-batches; of the interleaved schedule a multiple of the stages. One entry for each stage.
std::vector<StageExtent> pipeline_extents(plan::Schedule schedule, const std::vector<StageTimes>& stages, int passes);

}  // namespace lockstep::search
