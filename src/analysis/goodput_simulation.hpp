// Simulates runs that fail, fall back to their last checkpoint and go on.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/goodput.hpp"

namespace lockstep::analysis {

/// Elapsed time of one run, by what it went to.
struct RunTimes {
    Seconds useful, checkpoints, lost_work, downtime;
    std::int64_t failures = 0;
    Seconds elapsed() const { return useful + checkpoints + lost_work + downtime; }
};

/// One run of `work`, with a checkpoint after each `interval` of it but the last. Failures come from (seed, run, number
/// of the failure), so that runs with other intervals fail after equally long lives.
RunTimes simulate_run(const FailingJob& job, Seconds interval, Seconds work, std::uint64_t seed, int run);

std::vector<RunTimes> simulate_runs(const FailingJob& job, Seconds interval, Seconds work, std::uint64_t seed,
                                    int runs);
SimulatedGoodput goodput_of(const std::vector<RunTimes>& runs);
TimeShares shares_of(const std::vector<RunTimes>& runs);

/// The best interval by simulation: of whole numbers of steps around Daly's (a quarter to four times as long), first a
/// coarse series, then a fine one around its best.
struct BestInterval {
    std::int64_t steps = 1;
    Seconds low, high;  ///< intervals around it whose runs are, on average, not longer by two standard errors of the
                        ///< paired difference
};
BestInterval best_interval(const FailingJob& job, Seconds work, std::uint64_t seed, int runs);

}  // namespace lockstep::analysis
