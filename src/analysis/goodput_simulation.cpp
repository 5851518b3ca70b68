#include "analysis/goodput_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/random.hpp"
#include "fit/quantiles.hpp"

namespace lockstep::analysis {

namespace {

/// The state of a run: what is safe in a checkpoint, and what went where.
class Run {
public:
    Run(const FailingJob& job, Seconds interval, Seconds work) : job_(job), interval_(interval), work_(work) {}

    bool is_done() const { return is_done_; }

    /// The job runs from its last checkpoint until it is done or, `life` later, fails.
    void live(Seconds life) {
        if (times_.failures > 0) {
            const Seconds down = std::min(life, job_.downtime);
            times_.downtime += down;
            if (life <= job_.downtime) return fail();
            life -= down;
        }
        const Seconds rest = work_ - times_.useful;
        const double checkpoints = std::max(0.0, std::ceil(rest / interval_ - 1e-9) - 1);
        const Seconds needed = rest + checkpoints * job_.checkpoint;
        if (life >= needed) {
            keep(rest, checkpoints);
            is_done_ = true;
            return;
        }
        // A checkpoint counts when it is written, `background` after the ranks went on.
        const Seconds cycle = interval_ + job_.checkpoint;
        const double kept = std::min(checkpoints, std::floor(std::max(0.0, (life - job_.background) / cycle)));
        keep(kept * interval_, kept);
        times_.lost_work += life - kept * cycle;
        fail();
    }

    const RunTimes& times() const { return times_; }

private:
    void keep(Seconds useful, double checkpoints) {
        times_.useful += useful;
        times_.checkpoints += checkpoints * job_.checkpoint;
    }
    void fail() { ++times_.failures; }

    const FailingJob& job_;
    Seconds interval_, work_;
    RunTimes times_;
    bool is_done_ = false;
};

Seconds mean_elapsed(const std::vector<RunTimes>& runs) {
    Seconds sum;
    for (const RunTimes& run : runs) sum += run.elapsed();
    return sum / static_cast<double>(runs.size());
}

/// Standard error of the mean of values.
double standard_error(const std::vector<double>& values) {
    const double mean = fit::mean(values);
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    const auto n = static_cast<double>(values.size());
    return std::sqrt(squares / (n - 1) / n);
}

/// Whether runs of `other` take longer than those of `best` by more than chance: failures are the same in both.
bool is_worse(const std::vector<RunTimes>& best, const std::vector<RunTimes>& other) {
    std::vector<double> longer;
    for (std::size_t i = 0; i < best.size(); ++i) longer.push_back((other[i].elapsed() - best[i].elapsed()).value);
    return fit::mean(longer) > 2 * standard_error(longer);
}

/// Whole numbers of steps from `around` / reach to `around` x reach, `count` of them in geometric series.
std::set<std::int64_t> series(const FailingJob& job, Seconds around, double reach, int count) {
    std::set<std::int64_t> steps;
    for (int i = 0; i < count; ++i)
        steps.insert(steps_between(job, around * std::pow(reach, 2.0 * i / (count - 1) - 1)));
    return steps;
}

/// Simulates each candidate once.
class Search {
public:
    Search(const FailingJob& job, Seconds work, std::uint64_t seed, int runs)
        : job_(job), work_(work), seed_(seed), runs_(runs) {}

    void look_at(const std::set<std::int64_t>& candidates) {
        for (const std::int64_t steps : candidates) {
            if (best_ != 0 && expected(steps) < hopeless * expected(best_)) continue;
            const auto [candidate, is_new] = simulated_.try_emplace(steps);
            if (is_new) candidate->second = simulate_runs(job_, time_of(steps), work_, seed_, runs_);
            if (best_ == 0 || mean_elapsed(candidate->second) < mean_elapsed(simulated_.at(best_))) best_ = steps;
        }
    }
    Seconds time_of(std::int64_t steps) const { return static_cast<double>(steps) * job_.step; }
    std::int64_t best() const { return best_; }
    /// The longest unbroken stretch of candidates around the best that are as good.
    BestInterval found() const {
        auto low = simulated_.find(best_);
        auto high = low;
        while (low != simulated_.begin() && !is_worse(simulated_.at(best_), std::prev(low)->second)) --low;
        while (std::next(high) != simulated_.end() && !is_worse(simulated_.at(best_), std::next(high)->second)) ++high;
        return {best_, time_of(low->first), time_of(high->first)};
    }

private:
    double expected(std::int64_t steps) const { return expected_shares(job_, time_of(steps)).useful; }

    static constexpr double hopeless = 0.25;  // of the best: its runs would take long, and tell nothing
    const FailingJob& job_;
    Seconds work_;
    std::uint64_t seed_;
    int runs_;
    std::map<std::int64_t, std::vector<RunTimes>> simulated_;
    std::int64_t best_ = 0;
};

}  // namespace

RunTimes simulate_run(const FailingJob& job, Seconds interval, Seconds work, std::uint64_t seed, int run) {
    Run state(job, interval, work);
    for (std::int64_t life = 0; !state.is_done(); ++life)
        state.live(-std::log(random_open_uniform(seed, run, life)) * job.mtbf);
    return state.times();
}

std::vector<RunTimes> simulate_runs(const FailingJob& job, Seconds interval, Seconds work, std::uint64_t seed,
                                    int runs) {
    std::vector<RunTimes> all;
    all.reserve(static_cast<std::size_t>(runs));
    for (int run = 0; run < runs; ++run) all.push_back(simulate_run(job, interval, work, seed, run));
    return all;
}

SimulatedGoodput goodput_of(const std::vector<RunTimes>& runs) {
    std::vector<double> elapsed, goodput;
    for (const RunTimes& run : runs) {
        elapsed.push_back(run.elapsed().value);
        goodput.push_back(run.useful / run.elapsed());
    }
    const double work = runs.front().useful.value;
    const double mean = fit::mean(elapsed);
    const double error = runs.size() > 1 ? 1.96 * standard_error(elapsed) : 0;
    const double ends[] = {0.05, 0.95};
    const auto of_runs = fit::quantiles(goodput, ends);
    return {work / mean, work / (mean + error),        std::min(1.0, work / (mean - error)), of_runs[0],
            of_runs[1],  static_cast<int>(runs.size())};
}

TimeShares shares_of(const std::vector<RunTimes>& runs) {
    RunTimes sum;
    for (const RunTimes& run : runs) {
        sum.useful += run.useful;
        sum.checkpoints += run.checkpoints;
        sum.lost_work += run.lost_work;
        sum.downtime += run.downtime;
    }
    const Seconds all = sum.elapsed();
    return {sum.useful / all, sum.checkpoints / all, sum.lost_work / all, sum.downtime / all};
}

BestInterval best_interval(const FailingJob& job, Seconds work, std::uint64_t seed, int runs) {
    constexpr double far = 4, near = 1.25;
    const Seconds first = std::max(daly_interval(job), job.background);
    Search search(job, work, seed, runs);
    search.look_at({steps_between(job, first)});
    search.look_at(series(job, first, far, 17));
    search.look_at(series(job, search.time_of(search.best()), near, 17));
    return search.found();
}

}  // namespace lockstep::analysis
