#include "fit/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/tanh_sinh.hpp>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace lockstep::fit {

namespace {

using boost::math::complement;
// Doubles suffice; the default computes in long double, three times as slowly.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, Policy>;
using Gamma = boost::math::gamma_distribution<double, Policy>;

constexpr std::array<std::pair<Family, std::string_view>, 4> names{{{Family::normal, "normal"},
                                                                    {Family::lognormal, "lognormal"},
                                                                    {Family::gamma, "gamma"},
                                                                    {Family::exponential, "exponential"}}};

// Far below the deviation of any gamma a simulation meets; above it Boost's iterations lose digits, and the gamma is a
// normal to 1e-6 deviations.
constexpr double largest_shape = 1e12;

void check_probability(double p) {
    if (!(p > 0 && p < 1)) throw LogicError(fmt::format("a quantile at {}, outside of 0 to 1", p));
}

/// The quantile from whichever of both tails is the smaller.
template <class Boost>
double from_tails(const Boost& distribution, double upper, double lower) {
    return upper <= 0.5 ? boost::math::quantile(complement(distribution, upper))
                        : boost::math::quantile(distribution, lower);
}

}  // namespace

std::string_view to_string(Family family) {
    return std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.first == family; })->second;
}

std::optional<Family> parse_family(std::string_view text) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.second == text; });
    return found == names.end() ? std::nullopt : std::optional(found->first);
}

double Moments::deviation() const { return std::sqrt(variance); }

Moments& Moments::operator+=(const Moments& other) {
    mean += other.mean;
    variance += other.variance;
    return *this;
}

Distribution::Distribution(Family family, Moments moments) : family_(family), moments_(moments) {
    if (!(moments.mean > 0) || !(moments.variance >= 0) || !std::isfinite(moments.mean + moments.variance))
        throw LogicError(
            fmt::format("a distribution of times with mean {} and variance {}", moments.mean, moments.variance));
}

Distribution Distribution::factor(Family family, double cv) {
    if (!(cv >= 0 && std::isfinite(cv)))
        throw InputError(fmt::format("a coefficient of variation of {} (it is a spread); give 0 or more", cv));
    if (family == Family::normal && cv > 0.5)
        throw InputError(
            fmt::format("a normal factor with coefficient of variation {} is often negative; use at most 0.5, or "
                        "lognormal or gamma",
                        cv));
    if (family == Family::exponential && cv != 1)
        throw InputError(fmt::format("an exponential factor has coefficient of variation 1, not {}; use gamma", cv));
    return {family, {1, cv * cv}};
}

double normal_score(double p) {
    check_probability(p);
    return from_tails(Normal(), 1 - p, p);
}

double Distribution::quantile(double p) const {
    check_probability(p);
    return upper_deviate(1 - p, p);
}

double Distribution::upper_quantile(double q) const {
    check_probability(q);
    return upper_deviate(q, 1 - q);
}

double Distribution::maximum_of(double k, double u) const {
    check_probability(u);
    if (!(k >= 1)) throw LogicError(fmt::format("the largest of {} draws", k));
    const double log_lower = std::log(u) / k;
    return upper_deviate(-std::expm1(log_lower), std::exp(log_lower));
}

/// The value with probability `tail` above and `lower` below.
double Distribution::upper_deviate(double tail, double lower) const {
    if (moments_.variance == 0) return moments_.mean;
    const double ratio = moments_.variance / (moments_.mean * moments_.mean);
    const bool is_gamma = family_ == Family::gamma || family_ == Family::exponential;
    if (is_gamma && ratio * largest_shape > 1) return from_tails(Gamma(1 / ratio, moments_.mean * ratio), tail, lower);
    const double z = from_tails(Normal(), tail, lower);
    if (family_ == Family::lognormal) {
        const double log_variance = std::log1p(ratio);
        return moments_.mean * std::exp(z * std::sqrt(log_variance) - log_variance / 2);
    }
    return std::max(0.0, moments_.mean + z * moments_.deviation());
}

Moments Distribution::moments_of_maximum(double k) const {
    if (!(k >= 1)) throw LogicError(fmt::format("the largest of {} draws", k));
    if (k == 1 || moments_.variance == 0) return moments_;
    // Around the median of the maximum, so that the variance is no difference of large numbers.
    const double centre = maximum_of(k, 0.5);
    const double scale = moments_.deviation();
    boost::math::quadrature::tanh_sinh<double, Policy> integrator(10);
    // Boost hands over the distance to the nearer end: u is -distance near 0 and 1 - distance near 1.
    const auto deviate = [&](double distance) {
        const double log_lower = (distance > 0 ? std::log1p(-distance) : std::log(-distance)) / k;
        return (upper_deviate(-std::expm1(log_lower), std::exp(log_lower)) - centre) / scale;
    };
    const double first = integrator.integrate([&](double, double c) { return deviate(c); }, 0.0, 1.0, 1e-10);
    const double second =
        integrator.integrate([&](double, double c) { return std::pow(deviate(c), 2); }, 0.0, 1.0, 1e-10);
    return {centre + scale * first, scale * scale * (second - first * first)};
}

Moments MaximumMoments::of(const Distribution& distribution, double k) {
    const Moments moments = distribution.moments();
    if (k == 1 || moments.variance == 0) return moments;
    const double deviation = moments.deviation();
    const double shape = distribution.family() == Family::normal ? 0 : deviation / moments.mean;
    auto [found, is_new] = standardised_.try_emplace({distribution.family(), shape, k});
    Moments& standard = found->second;
    if (is_new) {
        const Moments largest = distribution.moments_of_maximum(k);
        standard = {(largest.mean - moments.mean) / deviation, largest.variance / moments.variance};
    }
    return {moments.mean + deviation * standard.mean, moments.variance * standard.variance};
}

}  // namespace lockstep::fit
