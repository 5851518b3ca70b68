#include "sim/drift.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"

namespace lockstep::sim {

namespace {

/// Streams of random numbers: factors of kernels, and latest ranks of meetings.
constexpr int kernels = 0, meetings = 1;
/// Maxima are worked out for shapes this far apart (relative) and no closer.
constexpr double shape_step = 0.02;

}  // namespace

DriftModel::DriftModel(const machine::Jitter& jitter, std::uint64_t seed)
    : jitter_(jitter), seed_(seed), factors_(fit::Distribution::factor(jitter.family, jitter.cv)) {}

double DriftModel::factor(int rank, std::int64_t step, std::int32_t op) const {
    return factors_.quantile(random_open_uniform(seed_, kernels, rank, step, op));
}

void DriftModel::add(Drift& drift, Seconds time, double factor) const {
    drift.sum.moments += factors_.moments().scaled(time.value);
    drift.sum.deviation += time.value * (factor - 1);
}

/// Moments of the largest of k: from the standardised variable of nearly the same shape, which is remembered.
fit::Moments DriftModel::maximum(const fit::Moments& of, double k) {
    const double cv = of.deviation() / of.mean;
    const double near = std::exp(std::round(std::log(cv) / shape_step) * shape_step);
    const fit::Moments largest = maxima_.of(fit::Distribution(jitter_.family, {1, near * near}), k);
    return {of.mean + of.deviation() * (largest.mean - 1) / near, of.variance * largest.variance / (near * near)};
}

Seconds DriftModel::meet(Drift& drift, std::int32_t communicator, std::int64_t others, int rank, std::int64_t step,
                         std::int32_t op) {
    DriftSum& before = drift.at_meeting[static_cast<std::size_t>(communicator)];
    const fit::Moments since{drift.sum.moments.mean - before.moments.mean,
                             drift.sum.moments.variance - before.moments.variance};
    Seconds late;
    if (others > 0 && since.mean > 0 && since.variance > 0) {
        const double own = drift.sum.deviation - before.deviation;
        const double u = random_open_uniform(seed_, meetings, rank, step, op);
        const double latest =
            fit::Distribution(jitter_.family, since).maximum_of(static_cast<double>(others), u) - since.mean;
        late = Seconds{std::max(0.0, latest - own)};
        const fit::Moments together = maximum(since, static_cast<double>(others + 1));
        drift.sum.moments.mean = before.moments.mean + together.mean;
        drift.sum.moments.variance = before.moments.variance + together.variance;
        drift.sum.deviation = before.deviation + own + late.value - (together.mean - since.mean);
    }
    before = drift.sum;
    return late;
}

}  // namespace lockstep::sim
