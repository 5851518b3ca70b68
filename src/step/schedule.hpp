// When a real executor may run which op: the streams of a graph as lanes, and what each op waits for, found before the
// run so that steps allocate nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// An op may start when lane `lane` has completed `step * ops of the lane + count` ops (count is 0 or less when the op
/// waits for the step before).
struct Wait {
    std::int32_t lane = 0;
    std::int64_t count = 0;
};
/// An earlier op whose data this one needs: by position in its step, this step or the one before.
struct Source {
    std::int32_t position = 0;
    std::int32_t steps_back = 0;
};
struct Needs {
    std::vector<Wait> waits;      ///< of other lanes; ops of one lane run in order anyway
    std::vector<Source> sources;  ///< of all lanes, for the time an op was ready
};

struct ScheduledOp {
    OpInstance instance;
    std::int32_t lane = 0;           ///< also the stream's number
    std::int32_t place_in_lane = 0;  ///< among the lane's ops of one step
    bool is_awaited = false;         ///< by another lane
    Needs first, steady;             ///< in step 0; in all later ones
    const Needs& needs(std::int64_t step) const { return step == 0 ? first : steady; }
};

struct ScheduledLane {
    Stream::Lane kind = Stream::Lane::compute;
    std::vector<std::int32_t> ops;  ///< positions in issue order
};

struct Schedule {
    std::vector<ScheduledOp> ops;      ///< one step, in issue order
    std::vector<ScheduledLane> lanes;  ///< by stream
};

/// Throws LogicError when the dependencies of steps 1 and 2 differ.
Schedule make_schedule(const StepGraph& graph, const Program& program);
/// The last op that writes the tensor, by position; -1: none.
std::int32_t last_writer(const Schedule& schedule, TensorId tensor);

}  // namespace lockstep::step
