#include "fit/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace lockstep::fit {
namespace {

constexpr std::uint64_t seed = 7;

double sum_of_inverse_powers(int k, int power) {
    double sum = 0;
    for (int i = 1; i <= k; ++i) sum += std::pow(i, -power);
    return sum;
}

TEST(Distribution, quantiles_of_factors_are_those_of_tables) {
    // Normal: z(0.975) = 1.959964. Lognormal: exp(z s - s^2/2), s^2 = ln(1 + cv^2). Gamma of cv 1/2: chi-squared with 8
    // degrees of freedom over 8, median 7.344121 (tables). Exponential: -ln(1 - p).
    EXPECT_NEAR(Distribution::factor(Family::normal, 0.1).quantile(0.975), 1.1959964, 1e-7);
    const double s = std::sqrt(std::log(1.01));
    EXPECT_NEAR(Distribution::factor(Family::lognormal, 0.1).quantile(0.975), std::exp(1.959963985 * s - s * s / 2),
                1e-9);
    EXPECT_NEAR(Distribution::factor(Family::gamma, 0.5).quantile(0.5), 7.344121 / 8, 1e-7);
    EXPECT_NEAR(Distribution::factor(Family::exponential, 1).quantile(0.9), std::log(10), 1e-12);
}

TEST(Distribution, an_upper_quantile_loses_nothing_where_one_minus_q_is_one) {
    // Exponential: -ln q.
    EXPECT_NEAR(Distribution::factor(Family::exponential, 1).upper_quantile(1e-30), 30 * std::log(10), 1e-10);
    // Normal: Q(z) = 1e-20 at z = 9.262340.
    EXPECT_NEAR(Distribution::factor(Family::normal, 0.1).upper_quantile(1e-20), 1.9262340, 1e-7);
}

TEST(Distribution, a_normal_counts_what_lies_below_0_as_0_and_no_spread_is_the_mean) {
    EXPECT_EQ(Distribution::factor(Family::normal, 0.5).quantile(1e-3), 0);
    for (const Family family : {Family::normal, Family::lognormal, Family::gamma})
        EXPECT_EQ(Distribution(family, {3, 0}).maximum_of(1e6, 0.99), 3);
}

TEST(Distribution, the_largest_of_k_exponentials_is_at_minus_ln_of_one_minus_the_kth_root) {
    const auto exponential = Distribution::factor(Family::exponential, 1);
    EXPECT_NEAR(exponential.maximum_of(1, 0.3), -std::log(0.7), 1e-13);
    // k = 1e6, u = 1/2: 1 - 2^(-1e-6) = 6.931469e-7, and -ln of it is 14.182024.
    EXPECT_NEAR(exponential.maximum_of(1e6, 0.5), 14.182024, 1e-6);
    EXPECT_NEAR(exponential.maximum_of(1e6, 0.5), -std::log(-std::expm1(-std::numbers::ln2 / 1e6)), 1e-11);
}

TEST(Distribution, the_largest_of_k_draws_is_distributed_as_the_largest_of_k_draws) {
    // Kolmogorov and Smirnov: with n simulated maxima, the u at which each lies is uniform; their largest distance from
    // the diagonal exceeds 1.95/sqrt(n) once in 1,000 seeds.
    RecordProperty("seed", static_cast<int>(seed));
    constexpr int n = 2000;
    constexpr int k = 50;
    for (const auto& [family, cv] : {std::pair{Family::normal, 0.2}, std::pair{Family::lognormal, 0.5},
                                     std::pair{Family::gamma, 0.7}, std::pair{Family::exponential, 1.0}}) {
        const auto distribution = Distribution::factor(family, cv);
        std::vector<double> maxima;
        for (int i = 0; i < n; ++i) {
            double largest = 0;
            for (int j = 0; j < k; ++j)
                largest = std::max(largest, distribution.quantile(random_open_uniform(seed, i, j)));
            maxima.push_back(largest);
        }
        std::sort(maxima.begin(), maxima.end());
        for (int i = 49; i < n; i += 50) {
            const double u = (i + 0.5) / n;
            const double band = 1.95 / std::sqrt(n);
            if (u > band) { EXPECT_GT(maxima[i], distribution.maximum_of(k, u - band)) << to_string(family); }
            if (u < 1 - band) { EXPECT_LT(maxima[i], distribution.maximum_of(k, u + band)) << to_string(family); }
        }
    }
}

TEST(Distribution, moments_of_the_largest_of_k_are_those_of_order_statistics) {
    // Normal: k = 2: 1/sqrt(pi), 1 - 1/pi; k = 3: 3/(2 sqrt(pi)); k = 10, 100, 1000: 1.538753, 2.507594, 3.241436
    // (Tippett, Biometrika 17 (1925); Harter, Biometrika 48 (1961)).
    const auto normal = Distribution::factor(Family::normal, 0.1);
    const auto standard = [&](double k) { return (normal.moments_of_maximum(k).mean - 1) / 0.1; };
    EXPECT_NEAR(standard(2), std::numbers::inv_sqrtpi, 1e-8);
    EXPECT_NEAR(normal.moments_of_maximum(2).variance / 0.01, 1 - std::numbers::inv_pi, 1e-8);
    EXPECT_NEAR(standard(3), 1.5 * std::numbers::inv_sqrtpi, 1e-8);
    EXPECT_NEAR(standard(10), 1.538753, 1e-6);
    EXPECT_NEAR(standard(100), 2.507594, 1e-6);
    EXPECT_NEAR(standard(1000), 3.241436, 1e-6);
    // Exponential: sums of 1/i and 1/i^2.
    for (const int k : {10, 1'000'000}) {
        const Moments largest = Distribution::factor(Family::exponential, 1).moments_of_maximum(k);
        EXPECT_NEAR(largest.mean / sum_of_inverse_powers(k, 1), 1, 1e-8) << k;
        EXPECT_NEAR(largest.variance / sum_of_inverse_powers(k, 2), 1, 1e-7) << k;
    }
    // Lognormal, k = 2: 2 Phi(s / sqrt 2) times the mean.
    const double s = std::sqrt(std::log(1.25));
    EXPECT_NEAR(Distribution::factor(Family::lognormal, 0.5).moments_of_maximum(2).mean, 1 + std::erf(s / 2), 1e-8);
}

TEST(Distribution, remembered_moments_of_the_maximum_scale_with_mean_and_deviation) {
    MaximumMoments remembered;
    const Distribution gamma(Family::gamma, {8, 16});
    const Moments once = remembered.of(gamma, 1000);
    const Moments direct = gamma.moments_of_maximum(1000);
    EXPECT_NEAR(once.mean / direct.mean, 1, 1e-12);
    EXPECT_NEAR(once.variance / direct.variance, 1, 1e-12);
    const Moments half = remembered.of(Distribution(Family::gamma, gamma.moments().scaled(0.5)), 1000);
    EXPECT_NEAR(half.mean / once.mean, 0.5, 1e-12);
    EXPECT_EQ(remembered.of(gamma, 1), gamma.moments());
}

TEST(Distribution, the_sum_of_exponentials_is_the_gamma_of_the_summed_moments) {
    // Four exponentials of mean 2: Erlang, P(X > x) = exp(-x/2) sum of (x/2)^i / i! for i < 4; at x = 16: exp(-8) (1 +
    // 8
    // + 32 + 512/6) = 0.0423801.
    Moments sum = Distribution::factor(Family::exponential, 1).moments().scaled(2);
    sum = sum + sum + sum + sum;
    EXPECT_EQ(sum, (Moments{8, 16}));
    EXPECT_NEAR(Distribution(Family::exponential, sum).upper_quantile(0.0423801120), 16, 1e-6);
}

TEST(Distribution, the_sum_of_lognormals_is_near_fenton_and_wilkinsons) {
    // Ten of cv 0.3: quantiles of 20,000 simulated sums lie within 1 % of the approximation's.
    RecordProperty("seed", static_cast<int>(seed));
    const auto one = Distribution::factor(Family::lognormal, 0.3);
    const Distribution sum(Family::lognormal, {10, 0.9});
    std::vector<double> sums(20'000);
    for (std::size_t i = 0; i < sums.size(); ++i)
        for (int j = 0; j < 10; ++j) sums[i] += one.quantile(random_open_uniform(seed, i, j));
    std::sort(sums.begin(), sums.end());
    for (const double p : {0.05, 0.5, 0.95})
        EXPECT_NEAR(sums[static_cast<std::size_t>(p * 20'000)] / sum.quantile(p), 1, 0.01) << p;
}

TEST(Distribution, a_gamma_of_little_spread_is_a_normal) {
    for (const double cv : {1e-3, 1e-5, 1e-7}) {
        const double z = (Distribution::factor(Family::gamma, cv).maximum_of(1e5, 0.5) - 1) / cv;
        const double normal = (Distribution(Family::normal, {1, cv * cv}).maximum_of(1e5, 0.5) - 1) / cv;
        EXPECT_NEAR(z, normal, 10 * cv + 2e-5) << cv;  // skewness 2 cv moves it by cv (z^2 - 1) / 3
    }
}

TEST(Distribution, spreads_that_no_family_member_has_are_refused) {
    EXPECT_THROW(Distribution::factor(Family::gamma, -0.1), InputError);
    EXPECT_THROW(Distribution::factor(Family::normal, 0.6), InputError);
    EXPECT_THROW(Distribution::factor(Family::exponential, 0.5), InputError);
    EXPECT_THROW(Distribution(Family::gamma, {0, 1}), LogicError);
    EXPECT_THROW(Distribution::factor(Family::gamma, 1).quantile(1), LogicError);
    EXPECT_THROW(Distribution::factor(Family::gamma, 1).maximum_of(0.5, 0.5), LogicError);
    EXPECT_EQ(parse_family("lognormal"), Family::lognormal);
    EXPECT_EQ(parse_family("pareto"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::fit
