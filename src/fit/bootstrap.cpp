#include "fit/bootstrap.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fit/quantiles.hpp"

namespace lockstep::fit {

std::vector<std::size_t> Resample::indices(std::size_t count, std::uint64_t set) const {
    if (count > UINT32_MAX) throw LogicError("a resample of more than 2^32 values");
    const std::uint64_t stream = random_bits(seed, set, number);
    std::vector<std::size_t> drawn(count);
    for (std::size_t i = 0; i < count; ++i) drawn[i] = ((random_bits(seed, stream, i) >> 32) * count) >> 32;
    return drawn;
}

std::vector<Interval> bootstrap_intervals(const std::function<std::vector<double>(const Resample&)>& statistic,
                                          const BootstrapOptions& options) {
    if (!(options.coverage > 0 && options.coverage < 1) || options.resamples < 1)
        throw LogicError(
            fmt::format("a bootstrap with coverage {} and {} resamples", options.coverage, options.resamples));
    std::vector<std::vector<double>> results;  // for each result of the statistic, its value in each resample
    for (int number = 0; number < options.resamples; ++number) {
        const auto values = statistic({options.seed, static_cast<std::uint64_t>(number)});
        if (number == 0) results.resize(values.size());
        if (values.size() != results.size()) throw LogicError("a bootstrapped statistic changed its number of results");
        for (std::size_t k = 0; k < values.size(); ++k) results[k].push_back(values[k]);
    }
    const std::array<double, 2> ends{(1 - options.coverage) / 2, (1 + options.coverage) / 2};
    std::vector<Interval> intervals;
    for (const auto& values : results) {
        const auto both = quantiles(values, ends);
        intervals.push_back({both[0], both[1]});
    }
    return intervals;
}

Interval bootstrap_interval(std::span<const double> values,
                            const std::function<double(std::span<const double>)>& statistic,
                            const BootstrapOptions& options) {
    if (values.size() < 2)
        throw IncompleteError(
            fmt::format("an interval from {} values (spread needs at least 2); measure more steps", values.size()));
    std::vector<double> drawn(values.size());
    const auto of_drawn = [&](const Resample& resample) {
        const auto indices = resample.indices(values.size());
        for (std::size_t i = 0; i < indices.size(); ++i) drawn[i] = values[indices[i]];
        return std::vector<double>{statistic(drawn)};
    };
    return bootstrap_intervals(of_drawn, options).front();
}

}  // namespace lockstep::fit
