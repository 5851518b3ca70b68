#include "fit/quantiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace lockstep::fit {

namespace {

double quantile_of_sorted(const std::vector<double>& sorted, double p) {
    if (!(p >= 0 && p <= 1)) throw LogicError(fmt::format("quantile at {}, outside of 0 to 1", p));
    const double position = p * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const double fraction = position - static_cast<double>(below);
    if (fraction == 0) return sorted[below];
    return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

}  // namespace

std::vector<double> quantiles(std::span<const double> values, std::span<const double> ps) {
    if (values.empty()) throw IncompleteError("a quantile of no values (nothing was measured)");
    std::vector<double> sorted(values.begin(), values.end());
    if (std::ranges::any_of(sorted, [](double value) { return std::isnan(value); }))
        throw LogicError("a quantile of values with a NaN among them");
    std::ranges::sort(sorted);
    std::vector<double> results;
    for (const double p : ps) results.push_back(quantile_of_sorted(sorted, p));
    return results;
}

double quantile(std::span<const double> values, double p) { return quantiles(values, std::span(&p, 1)).front(); }

double mean(std::span<const double> values) {
    if (values.empty()) throw IncompleteError("a mean of no values (nothing was measured)");
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace lockstep::fit
