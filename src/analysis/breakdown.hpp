// Where the time of one step went on one rank.
#pragma once

#include <map>
#include <utility>

#include "analysis/findings.hpp"
#include "analysis/intervals.hpp"
#include "step/graph.hpp"
#include "step/span.hpp"

namespace lockstep::analysis {

/// When the last rank arrived at each collective of a step, by (op, micro-batch), on rank 0's clock.
using LastArrivals = std::map<std::pair<std::int32_t, std::int32_t>, Nanoseconds>;

struct StepBreakdown {
    Breakdown parts;               ///< they sum to the window
    Seconds communication;         ///< union of all communication, hidden or not
    Seconds hidden_communication;  ///< of it, beside compute
};

/// Splits `window` (the critical rank's step) by what runs, each instant counted once, in this order: optimizer and
/// other compute and copies; communication: exposed communication, wait until the last rank has arrived, bubble (a
/// message between pipeline stages waits for the other stage: what it takes beyond its shortest time in the step);
/// input;
/// launch (nothing runs between two ops: the host was late); idle (before the first and after the last op).
StepBreakdown break_down(const step::StepGraph& graph, const step::StepRecord& record, Interval window,
                         const LastArrivals& arrivals);

}  // namespace lockstep::analysis
