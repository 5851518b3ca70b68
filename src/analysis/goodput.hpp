// What failures and checkpoints leave of a job's throughput, in closed form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "experiment/failures.hpp"
#include "step/liveness.hpp"

namespace lockstep::analysis {

/// A job of N ranks under failures that come at random (exponential) every `mtbf` on average, at any time: also while a
/// checkpoint is written and while the job restarts.
struct FailingJob {
    Seconds mtbf;        ///< M, of the whole job: that of a GPU / N
    Seconds checkpoint;  ///< delta: the ranks stand still
    Seconds background;  ///< beta: a checkpoint counts only so long after the ranks went on
    Seconds downtime;    ///< R: detection and restart
    Seconds step;        ///< checkpoints are at ends of steps
};

/// Throws InputError when a rank's checkpoint can't be told: its rate without state to write.
FailingJob failing_job(const experiment::Failures& failures, int ranks, Seconds step, const step::MemoryUse& memory);
/// What a rank writes: parameters and optimizer state.
Bytes checkpoint_bytes(const step::MemoryUse& memory);

/// sqrt(2 delta M): Young, A first order approximation to the optimum checkpoint interval, CACM 17 (1974) 530-531.
Seconds young_interval(const FailingJob& job);
/// sqrt(2 delta M) (1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9) - delta below delta = 2M, else M: Daly, A higher order
/// estimate of the optimum checkpoint interval for restart dumps, FGCS 22 (2006) 303-312, equation 37.
Seconds daly_interval(const FailingJob& job);

/// Shares of the elapsed time; they sum to 1.
struct TimeShares {
    double useful = 0;       ///< goodput: steps that were kept
    double checkpoints = 0;  ///< standing still for checkpoints that were kept
    double lost_work = 0;    ///< since the checkpoint to which the job fell back
    double downtime = 0;     ///< detection and restart
};

/// With checkpoints every tau of work: useful = tau exp(-(R + beta) / M) / (M (exp((tau + delta) / M) - 1)), which for
/// beta = 0 is the inverse of Daly's exact wall time M exp(R/M) (exp((tau + delta)/M) - 1) / tau of a unit of work
/// (2006, equation 20); downtime = 1 - exp(-R/M), checkpoints = useful delta / tau.
/// With beta: a life after a restart keeps its first checkpoint after R + tau + delta + beta and each further one tau +
/// delta later, so it keeps exp(-(R + tau + delta + beta)/M) / (1 - exp(-(tau + delta)/M)) checkpoints, and lives last
/// M.
TimeShares expected_shares(const FailingJob& job, Seconds interval);

/// The whole number of steps, at least 1, whose time is nearest to `interval`, and no shorter than a checkpoint is
/// written in the background.
std::int64_t steps_between(const FailingJob& job, Seconds interval);

/// An interval between checkpoints and what it leaves.
struct CheckpointInterval {
    std::int64_t steps = 1;
    Seconds time;
    TimeShares shares;  ///< expected
};

/// Of a run of some work, many times with different seeds.
struct SimulatedGoodput {
    double mean = 0;                 ///< work / mean elapsed time
    double low95 = 0, high95 = 0;    ///< interval of confidence of the mean
    double run_p5 = 0, run_p95 = 0;  ///< nine of ten runs are between them
    int runs = 0;
};

struct Goodput {
    FailingJob job;
    Bytes checkpoint_bytes;  ///< of a rank; 0 where the checkpoint's time was given
    double failures_per_day = 0;
    Seconds young, daly;          ///< by formula
    CheckpointInterval best;      ///< by simulation
    Seconds best_low, best_high;  ///< no interval between them can be told from the best one
    CheckpointInterval used;      ///< the experiment's, or the best
    TimeShares shares;            ///< of `used`, simulated
    SimulatedGoodput simulated;   ///< of `used`
    Seconds work;  ///< of a simulated run: the experiment's, or less where it would fail more than 5,000 times
};

/// Throws InputError when the interval is shorter than a checkpoint, or when failures leave less than a thousandth of
/// the time: the job makes no progress.
Goodput find_goodput(const experiment::Failures& failures, int ranks, Seconds step, const step::MemoryUse& memory,
                     std::uint64_t seed);

}  // namespace lockstep::analysis
