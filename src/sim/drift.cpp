#include "sim/drift.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.hpp"

namespace lockstep::sim {

namespace {

/// Streams of random numbers: factors of kernels, and latest ranks of meetings.
constexpr int kernels = 0, meetings = 1;
/// Maxima are worked out for shapes this far apart (relative) and no closer.
constexpr double shape_step = 0.02;

double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double normal_probability(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

struct Later {
    fit::Moments time;
    double share = 1;  ///< how often the first is the later one
};

/// The later of two times with a covariance (Clark 1961, equations 2 to 4).
Later later_of(fit::Moments a, fit::Moments b, double covariance) {
    const double apart = std::sqrt(std::max(0.0, a.variance + b.variance - 2 * covariance));
    if (!(apart > 0)) return a.mean >= b.mean ? Later{a, 1} : Later{b, 0};
    const double alpha = (a.mean - b.mean) / apart;
    const double p = normal_probability(alpha), q = normal_probability(-alpha), d = normal_density(alpha);
    // Relative to a's mean, so that squares of large times don't cancel.
    const double difference = b.mean - a.mean;
    const double first = difference * q + apart * d;
    const double second = a.variance * p + (difference * difference + b.variance) * q + difference * apart * d;
    return {{a.mean + first, std::max(0.0, second - first * first)}, p};
}

}  // namespace

DriftModel::DriftModel(const machine::Jitter& jitter, std::uint64_t seed)
    : jitter_(jitter), seed_(seed), factors_(fit::Distribution::factor(jitter.family, jitter.cv)) {}

double DriftModel::factor(int rank, std::int64_t step, std::int32_t op) const {
    return factors_.quantile(random_open_uniform(seed_, kernels, rank, step, op));
}

void DriftModel::add(Drifts& drifts, Seconds time, double factor) const {
    const fit::Moments moments = factors_.moments().scaled(time.value);
    for (Drift& drift : drifts) {
        drift.moments += moments;
        drift.deviation += time.value * (factor - 1);
    }
}

/// Moments of the largest of k: from the standardised variable of nearly the same shape, which is remembered.
fit::Moments DriftModel::maximum(const fit::Moments& of, double k) {
    const double cv = of.deviation() / of.mean;
    const double near = std::exp(std::round(std::log(cv) / shape_step) * shape_step);
    const fit::Moments largest = maxima_.of(fit::Distribution(jitter_.family, {1, near * near}), k);
    return {of.mean + of.deviation() * (largest.mean - 1) / near, of.variance * largest.variance / (near * near)};
}

/// Who is late does not change at once: the scores of two draws from one path are as correlated as its kernel time then
/// and now.
double DriftModel::score_of(const Drift& since, Draw& last, double u) const {
    double score = fit::normal_score(u);
    if (last.origin == since.origin) {
        const double correlation = std::sqrt(std::min(1.0, last.variance / since.moments.variance));
        score = correlation * last.score + std::sqrt(1 - correlation * correlation) * score;
    }
    last = {since.origin, since.moments.variance, score};
    return score;
}

Seconds DriftModel::meet(Drifts& drifts, std::int32_t communicator, std::int64_t others, int rank, std::int64_t step,
                         std::int32_t op) {
    const Drift since = drifts[static_cast<std::size_t>(communicator)];
    Seconds late;
    if (others > 0 && since.moments.mean > 0 && since.moments.variance > 0) {
        const double u = random_open_uniform(seed_, meetings, rank, step, op);
        const double score = score_of(since, draws_[{rank, communicator}], u);
        const fit::Distribution times(jitter_.family, since.moments);
        const double latest =
            times.maximum_of(static_cast<double>(others), normal_probability(score)) - since.moments.mean;
        late = Seconds{std::max(0.0, latest - since.deviation)};
        const fit::Moments together = maximum(since.moments, static_cast<double>(others + 1));
        const double mean = together.mean - since.moments.mean;
        const double variance = together.variance - since.moments.variance;
        for (Drift& drift : drifts) {
            drift.moments.mean += mean;
            drift.moments.variance = std::max(0.0, drift.moments.variance + variance);
            drift.deviation += late.value - mean;
        }
    }
    drifts[static_cast<std::size_t>(communicator)] = {{}, 0, ++meetings_};
    return late;
}

void DriftModel::join(Drifts& drifts, Picoseconds later, const Drifts& other, Picoseconds earlier, Paths paths) const {
    const double ahead = (later - earlier).seconds().value;
    for (std::size_t c = 0; c < drifts.size(); ++c) {
        Drift& drift = drifts[c];
        // Mean times at which the two paths end, counted from the later one's end.
        const fit::Moments mine{-drift.deviation, drift.moments.variance};
        const fit::Moments others{-ahead - other[c].deviation, other[c].moments.variance};
        const bool is_shared = paths == Paths::of_one_rank && drift.origin == other[c].origin;
        const Later joined = later_of(mine, others, is_shared ? std::min(mine.variance, others.variance) : 0);
        const double kernel_time = joined.share * drift.moments.mean + (1 - joined.share) * other[c].moments.mean;
        // A time that varies by more than itself is none that kernels add up to.
        drift.moments = {std::max(kernel_time, joined.time.deviation()), joined.time.variance};
        drift.deviation = -joined.time.mean;
    }
}

}  // namespace lockstep::sim
