// Quantiles of a sample: pure functions of its values, whatever their order.
#pragma once

#include <span>
#include <vector>

#include "base/units.hpp"

namespace lockstep::fit {

/// The quantile at probability `p` in [0, 1] by linear interpolation between order statistics ("type 7" of Hyndman and
/// Fan, The American Statistician 50 (1996); what numpy and R do by default): with h = p (n - 1), x[floor h] + (h -
/// floor h) (x[floor h + 1]
/// - x[floor h]) of the sorted x. Throws IncompleteError without values, LogicError for a p outside [0, 1] or a value
/// that is NaN.
double quantile(std::span<const double> values, double p);
/// The same for several probabilities, sorting once; results in the order of `ps`.
std::vector<double> quantiles(std::span<const double> values, std::span<const double> ps);

inline double median(std::span<const double> values) { return quantile(values, 0.5); }
inline double p95(std::span<const double> values) { return quantile(values, 0.95); }
inline double p99(std::span<const double> values) { return quantile(values, 0.99); }
/// Arithmetic mean. Throws IncompleteError without values.
double mean(std::span<const double> values);

/// Quantile of dimensioned values.
template <int B, int F, int S>
Quantity<B, F, S> quantile(std::span<const Quantity<B, F, S>> values, double p) {
    std::vector<double> numbers;
    numbers.reserve(values.size());
    for (const auto value : values) numbers.push_back(value.value);
    return Quantity<B, F, S>{quantile(std::span<const double>(numbers), p)};
}
template <int B, int F, int S>
Quantity<B, F, S> quantile(const std::vector<Quantity<B, F, S>>& values, double p) {
    return quantile(std::span<const Quantity<B, F, S>>(values), p);
}
template <int B, int F, int S>
Quantity<B, F, S> median(const std::vector<Quantity<B, F, S>>& values) {
    return quantile(values, 0.5);
}

}  // namespace lockstep::fit
