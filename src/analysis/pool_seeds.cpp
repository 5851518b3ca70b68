#include "analysis/pool_seeds.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "fit/quantiles.hpp"

namespace lockstep::analysis {

namespace {

StepTime quantiles_of(std::span<const Seconds> times) {
    return {fit::quantile(times, 0.5), fit::quantile(times, 0.95), fit::quantile(times, 0.99),
            fit::quantile(times, 0.1), fit::quantile(times, 0.9)};
}

}  // namespace

RunFindings pool_seeds(const std::vector<RunFindings>& runs) {
    if (runs.empty()) throw LogicError("no seeds to pool");
    RunFindings pooled = runs.front();
    if (runs.size() == 1) return pooled;
    pooled.seeds = static_cast<int>(runs.size());
    pooled.step_times.clear();
    pooled.breakdown = {};
    pooled.overlapped_share = 0;
    const auto count = static_cast<double>(runs.size());
    for (const RunFindings& run : runs) {
        pooled.step_times.insert(pooled.step_times.end(), run.step_times.begin(), run.step_times.end());
        for (const auto part : breakdown_parts) {
            pooled.breakdown.*part += run.breakdown.*part / count;
            pooled.breakdown_p95.*part = std::max(pooled.breakdown_p95.*part, run.breakdown_p95.*part);
        }
        pooled.overlapped_share += run.overlapped_share / count;
    }
    pooled.counted_steps = static_cast<std::int64_t>(pooled.step_times.size());
    const Seconds before = runs.front().step_time.median;
    pooled.step_time = quantiles_of(std::span<const Seconds>(pooled.step_times));
    const double faster = before / pooled.step_time.median;
    pooled.throughput *= faster;
    if (pooled.collective) {
        pooled.collective->time = pooled.step_time.median;
        pooled.collective->algorithm *= faster;
        pooled.collective->bus *= faster;
    }
    if (pooled.mfu) *pooled.mfu *= faster;
    if (pooled.hfu) *pooled.hfu *= faster;
    return pooled;
}

}  // namespace lockstep::analysis
