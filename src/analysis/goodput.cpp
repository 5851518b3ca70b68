#include "analysis/goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/goodput_simulation.hpp"
#include "base/error.hpp"
#include "config/quantity.hpp"

namespace lockstep::analysis {

namespace {

constexpr double least_goodput = 1e-3;
constexpr Seconds day{86400};

// So many failures in all runs together settle the goodput to about a tenth of a percent of the time they cost.
constexpr double failures_of_all_runs = 1e5;
constexpr double fewest_runs = 40;
constexpr double most_runs = 2000;
constexpr double most_failures_of_a_run = 5000;

/// How much is simulated: many failures, but no more than can be done at once.
struct Effort {
    Seconds work;
    int runs = 1;
};
Effort effort_for(const FailingJob& job, Seconds wanted, double goodput) {
    const double failures_of_a_run = wanted / goodput / job.mtbf;
    const double least = std::max(failures_of_a_run, 1e-9);
    return {wanted * std::min(1.0, most_failures_of_a_run / least),
            static_cast<int>(std::clamp(failures_of_all_runs / least, fewest_runs, most_runs))};
}

CheckpointInterval interval_of(const FailingJob& job, std::int64_t steps) {
    const Seconds time = static_cast<double>(steps) * job.step;
    return {steps, time, expected_shares(job, time)};
}

void require_progress(const FailingJob& job, int ranks, const CheckpointInterval& interval) {
    if (interval.shares.useful >= least_goodput) return;
    throw InputError(fmt::format(
        "failures: a failure every {} on {} ranks makes progress impossible ({:.1g} of the time is left with "
        "checkpoints "
        "of {} every {} and {} to come back); use fewer ranks, shorter checkpoints or restarts, or a larger "
        "mtbf_per_gpu",
        config::format(job.mtbf), ranks, interval.shares.useful, config::format(job.checkpoint),
        config::format(interval.time), config::format(job.downtime)));
}

void require_longer_than_checkpoint(const FailingJob& job, Seconds interval) {
    if (interval >= job.checkpoint && interval >= job.background) return;
    throw InputError(
        fmt::format("failures: an interval of {} is shorter than a checkpoint ({} and {} in the "
                    "background); give more, or auto for the best one",
                    config::format(interval), config::format(job.checkpoint), config::format(job.background)));
}

}  // namespace

Bytes checkpoint_bytes(const step::MemoryUse& memory) { return memory.parameters + memory.optimizer; }

FailingJob failing_job(const experiment::Failures& failures, int ranks, Seconds step, const step::MemoryUse& memory) {
    FailingJob job;
    job.mtbf = failures.mtbf_per_gpu / static_cast<double>(ranks);
    if (const auto* rate = std::get_if<experiment::CheckpointRate>(&failures.checkpoint)) {
        if (checkpoint_bytes(memory).value <= 0)
            throw InputError("failures: this step has no parameters to write at checkpoint.rate; give its time");
        job.checkpoint = checkpoint_bytes(memory) / rate->rate;
    } else {
        job.checkpoint = std::get<experiment::CheckpointTime>(failures.checkpoint).time;
    }
    job.background = failures.background;
    job.downtime = failures.detect + failures.restart;
    job.step = step;
    return job;
}

Seconds young_interval(const FailingJob& job) { return Seconds{std::sqrt(2 * job.checkpoint.value * job.mtbf.value)}; }

Seconds daly_interval(const FailingJob& job) {
    const double share = job.checkpoint / job.mtbf / 2;
    if (share >= 1) return job.mtbf;
    return young_interval(job) * (1 + std::sqrt(share) / 3 + share / 9) - job.checkpoint;
}

TimeShares expected_shares(const FailingJob& job, Seconds interval) {
    const double m = job.mtbf.value;
    TimeShares shares;
    shares.downtime = -std::expm1(-job.downtime.value / m);
    shares.useful = interval.value / m * std::exp(-(job.downtime + job.background).value / m) /
                    std::expm1((interval + job.checkpoint).value / m);
    shares.checkpoints = shares.useful * (job.checkpoint / interval);
    shares.lost_work = std::max(0.0, 1 - shares.downtime - shares.useful - shares.checkpoints);
    return shares;
}

std::int64_t steps_between(const FailingJob& job, Seconds interval) {
    const double least = std::max(1.0, std::ceil(std::max(job.background, Seconds{0}) / job.step));
    return static_cast<std::int64_t>(std::max(least, std::round(interval / job.step)));
}

Goodput find_goodput(const experiment::Failures& failures, int ranks, Seconds step, const step::MemoryUse& memory,
                     std::uint64_t seed) {
    Goodput found;
    const FailingJob job = found.job = failing_job(failures, ranks, step, memory);
    if (std::holds_alternative<experiment::CheckpointRate>(failures.checkpoint))
        found.checkpoint_bytes = checkpoint_bytes(memory);
    found.failures_per_day = day / job.mtbf;
    found.young = young_interval(job);
    found.daly = daly_interval(job);
    const CheckpointInterval near_best = interval_of(job, steps_between(job, found.daly));
    require_progress(job, ranks, near_best);
    const Effort effort = effort_for(job, std::max(failures.work, step), near_best.shares.useful);
    found.work = effort.work;
    const BestInterval best = best_interval(job, effort.work, seed, effort.runs);
    found.best = interval_of(job, best.steps);
    found.best_low = best.low;
    found.best_high = best.high;
    found.used = found.best;
    if (failures.interval) {
        require_longer_than_checkpoint(job, *failures.interval);
        found.used = interval_of(job, steps_between(job, *failures.interval));
        require_progress(job, ranks, found.used);
    }
    const auto simulated = simulate_runs(job, found.used.time, effort.work, seed, effort.runs);
    found.simulated = goodput_of(simulated);
    found.shares = shares_of(simulated);
    return found;
}

}  // namespace lockstep::analysis
