#include "fit/quantiles.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"

namespace lockstep::fit {
namespace {

TEST(Quantiles, interpolate_linearly_between_order_statistics) {
    // Type 7 of {1, 2, 3, 4}: h = p * 3. p = 0.25 gives h = 0.75: 1 + 0.75 (2 - 1) = 1.75; p = 0.95 gives h = 2.85: 3 +
    // 0.85 = 3.85.
    const std::vector<double> values{4, 1, 3, 2};
    EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
    EXPECT_DOUBLE_EQ(p95(values), 3.85);
    EXPECT_DOUBLE_EQ(p99(values), 3.97);
    EXPECT_EQ(quantile(values, 0), 1);
    EXPECT_EQ(quantile(values, 1), 4);
}

TEST(Quantiles, the_median_is_the_middle_value_or_the_mean_of_the_two) {
    EXPECT_EQ(median(std::vector<double>{7, 1, 3}), 3);
    EXPECT_EQ(median(std::vector<double>{7, 1, 3, 5}), 4);
    EXPECT_EQ(median(std::vector<double>{7}), 7);
    EXPECT_EQ(median(std::vector<Seconds>{Seconds{3}, Seconds{1}}), Seconds{2});
}

TEST(Quantiles, several_at_once_equal_one_at_a_time) {
    const std::vector<double> values{9, 8, 1, 4, 4, 7};
    const std::vector<double> ps{0.9, 0.1, 0.5};
    const auto all = quantiles(values, ps);
    for (std::size_t i = 0; i < ps.size(); ++i) EXPECT_EQ(all[i], quantile(values, ps[i]));
}

TEST(Quantiles, infinite_values_are_ordered_like_others) {
    const std::vector<double> values{1, HUGE_VAL, 2};
    EXPECT_EQ(median(values), 2);
    EXPECT_EQ(quantile(values, 1), HUGE_VAL);
}

TEST(Quantiles, no_values_a_nan_or_a_probability_outside_0_to_1_are_refused) {
    EXPECT_THROW(median(std::vector<double>{}), IncompleteError);
    EXPECT_THROW(mean(std::vector<double>{}), IncompleteError);
    EXPECT_THROW(median(std::vector<double>{1, std::nan("")}), LogicError);
    EXPECT_THROW(quantile(std::vector<double>{1}, 1.5), LogicError);
    EXPECT_THROW(quantile(std::vector<double>{1}, std::nan("")), LogicError);
    EXPECT_EQ(mean(std::vector<double>{1, 2, 6}), 3);
}

}  // namespace
}  // namespace lockstep::fit
