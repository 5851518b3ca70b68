#include "fit/bootstrap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fit/quantiles.hpp"

namespace lockstep::fit {
namespace {

std::vector<double> normal_sample(std::uint64_t stream, std::size_t count) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = 10 + static_cast<double>(random_normal(21, stream, i));
    return values;
}

double mean_of(std::span<const double> values) { return mean(values); }

TEST(Bootstrap, equal_seeds_give_equal_intervals_and_others_do_not) {
    const auto values = normal_sample(0, 50);
    const Interval first = bootstrap_interval(values, mean_of, {.seed = 3});
    const Interval again = bootstrap_interval(values, mean_of, {.seed = 3});
    const Interval other = bootstrap_interval(values, mean_of, {.seed = 4});
    EXPECT_EQ(first.low, again.low);
    EXPECT_EQ(first.high, again.high);
    EXPECT_NE(first.low, other.low);
}

TEST(Bootstrap, the_80_percent_interval_of_a_mean_is_1_28_standard_errors_each_way) {
    // n = 400 of variance v: half width 1.2816 sqrt(v / n). 4000 resamples give its ends to about 3 %.
    const auto values = normal_sample(1, 400);
    const double centre = mean(values);
    double variance = 0;
    for (const double value : values) variance += (value - centre) * (value - centre) / 400;
    const Interval interval = bootstrap_interval(values, mean_of, {.resamples = 4000});
    const double half = 1.2816 * std::sqrt(variance / 400);
    EXPECT_NEAR(interval.low, centre - half, 0.1 * half);
    EXPECT_NEAR(interval.high, centre + half, 0.1 * half);
}

TEST(Bootstrap, an_80_percent_interval_holds_the_truth_in_about_80_percent_of_samples) {
    // 500 samples of 60: the share has a standard error of sqrt(0.8 * 0.2 / 500) = 1.8 %; the percentile method is 1 %
    // low at n = 60.
    int holds = 0;
    for (std::uint64_t sample = 0; sample < 500; ++sample) {
        const Interval interval =
            bootstrap_interval(normal_sample(100 + sample, 60), mean_of, {.resamples = 300, .seed = sample});
        holds += interval.low <= 10 && 10 <= interval.high ? 1 : 0;
    }
    EXPECT_NEAR(holds / 500.0, 0.79, 0.07) << "seeds 0 to 499 over streams 100 to 599 of seed 21";
}

TEST(Bootstrap, equal_values_give_an_interval_of_no_width) {
    const Interval interval = bootstrap_interval(std::vector<double>{2, 2, 2}, mean_of);
    EXPECT_EQ(interval.low, 2);
    EXPECT_EQ(interval.high, 2);
}

TEST(Bootstrap, indices_are_drawn_uniformly_and_apart_for_each_set_and_number) {
    // 1000 resamples of 10: each index comes 1000 times on average, standard error sqrt(10000 * 0.1 * 0.9) = 30.
    std::vector<int> counts(10);
    for (std::uint64_t number = 0; number < 1000; ++number)
        for (const std::size_t index : Resample{1, number}.indices(10)) ++counts.at(index);
    for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
    EXPECT_EQ((Resample{1, 2}.indices(20, 0)), (Resample{1, 2}.indices(20, 0)));
    EXPECT_NE((Resample{1, 2}.indices(20, 0)), (Resample{1, 2}.indices(20, 1)));
    EXPECT_NE((Resample{1, 2}.indices(20, 0)), (Resample{1, 3}.indices(20, 0)));
    EXPECT_NE((Resample{1, 2}.indices(20, 0)), (Resample{1, 2}.indices(20, 2)));
}

TEST(Bootstrap, a_ratio_of_two_samples_draws_each_on_its_own) {
    // Speed-up of constants 6 and 2 is 3 in every resample; the second result is the drawn share of one value.
    const std::vector<double> base{6, 6, 6};
    const std::vector<double> scaled{2, 2, 2, 2};
    const auto intervals = bootstrap_intervals([&](const Resample& resample) {
        double a = 0;
        double b = 0;
        for (const auto i : resample.indices(base.size(), 0)) a += base[i] / 3;
        for (const auto i : resample.indices(scaled.size(), 1)) b += scaled[i] / 4;
        const auto drawn = resample.indices(100, 2);
        return std::vector<double>{a / b, static_cast<double>(std::ranges::count(drawn, 0))};
    });
    ASSERT_EQ(intervals.size(), 2u);
    EXPECT_DOUBLE_EQ(intervals[0].low, 3);
    EXPECT_DOUBLE_EQ(intervals[0].high, 3);
    EXPECT_LT(intervals[1].low, intervals[1].high);
}

TEST(Bootstrap, one_value_or_an_option_out_of_range_is_refused) {
    EXPECT_THROW(bootstrap_interval(std::vector<double>{1}, mean_of), IncompleteError);
    const std::vector<double> two{1, 2};
    EXPECT_THROW(bootstrap_interval(two, mean_of, {.coverage = 1}), LogicError);
    EXPECT_THROW(bootstrap_interval(two, mean_of, {.resamples = 0}), LogicError);
}

}  // namespace
}  // namespace lockstep::fit
