// How often a job's GPUs fail, how it saves its state and how it comes back: the experiment's `failures`.
#pragma once

#include <optional>
#include <variant>

#include "base/units.hpp"
#include "config/document.hpp"

namespace lockstep::experiment {

/// A checkpoint stops the ranks for a known time, or for as long as each needs to write its state (parameters and
/// optimizer state, from the plan's memory) at a rate.
struct CheckpointTime {
    Seconds time;
};
struct CheckpointRate {
    Bandwidth rate;  ///< of one rank
};
using CheckpointCost = std::variant<CheckpointTime, CheckpointRate>;

struct Failures {
    Seconds mtbf_per_gpu;  ///< mean time between failures; a job of N ranks fails every mtbf_per_gpu / N on average
    CheckpointCost checkpoint;        ///< while the ranks stand still
    Seconds background;               ///< how long after that the checkpoint is still being written beside the steps
    std::optional<Seconds> interval;  ///< of work between checkpoints; none: the best one
    Seconds restart;                  ///< from detection to the first step
    Seconds detect;                   ///< from the failure to its detection
    Seconds work;                     ///< of the simulated run, as if nothing failed
};

/// {mtbf_per_gpu, checkpoint, background, interval, restart, detect, work}; none when absent. A rate or time that must
/// be above 0 and isn't, and an interval shorter than its checkpoint, are errors.
std::optional<Failures> read_failures(config::Object& experiment);

}  // namespace lockstep::experiment
