// The loop around an executor: steps in flight, live writing, stop signals, watchdog, one decision for all ranks.
#pragma once

#include <cstdint>
#include <functional>

#include "base/units.hpp"
#include "drive/stop_signals.hpp"
#include "record/live_writer.hpp"
#include "record/run_description.hpp"
#include "step/executor.hpp"
#include "world/world.hpp"

namespace lockstep::drive {

struct LoopOptions {
    std::int64_t steps = 1;  ///< warm-up included
    Seconds timeout{300};    ///< without a finished step
    /// On rank 0 after each of its finished steps.
    std::function<void(const step::StepRecord&)> on_step;
};

struct LoopOutcome {
    record::Status status = record::Status::complete;
    StopRequest stopped_by = StopRequest::none;  ///< the most urgent one any rank had
    std::int64_t steps = 0;                      ///< finished on every rank
};

/// Runs the steps; step k + 1 is enqueued before k is collected and written. A signal or a failed write on one rank
/// stops all ranks after the same step: the flags of step k are reduced while step k + 1 runs. On a failed write every
/// rank throws (see world::agree) after marking its file. When the executor itself fails, this rank says so and aborts
/// the world: its peers wait in collectives that can't complete. `signals` may be null (tests). The writer's status is
/// set; it is left open.
LoopOutcome run_loop(world::World& world, step::Executor& executor, record::LiveWriter& writer, StopSignals* signals,
                     const LoopOptions& options);

}  // namespace lockstep::drive
