// Intervals of a statistic by drawing its data again with replacement (Efron 1979), the same ones for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::fit {

struct Interval {
    double low = 0;
    double high = 0;
};

struct BootstrapOptions {
    double coverage =
        0.8;  ///< of the interval: between the quantiles (1 - coverage)/2 and (1 + coverage)/2 of the resamples
    int resamples = 1000;
    std::uint64_t seed = 1;
};

/// One drawing of all data sets; its indices depend on seed, number and data set alone.
struct Resample {
    std::uint64_t seed = 0;
    std::uint64_t number = 0;

    /// `count` indices in [0, count), each drawn independently, for the data set numbered `set` (one per independent
    /// sample).
    std::vector<std::size_t> indices(std::size_t count, std::uint64_t set = 0) const;
};

/// Percentile intervals of a statistic with one or more results, which draws from any number of samples itself; an
/// exception of the statistic passes through. Throws LogicError when the number of results changes or an option is out
/// of range.
std::vector<Interval> bootstrap_intervals(const std::function<std::vector<double>(const Resample&)>& statistic,
                                          const BootstrapOptions& options = {});

/// The interval of a statistic of one sample. Throws IncompleteError for fewer than two values: one value knows nothing
/// of its spread.
Interval bootstrap_interval(std::span<const double> values,
                            const std::function<double(std::span<const double>)>& statistic,
                            const BootstrapOptions& options = {});

}  // namespace lockstep::fit
