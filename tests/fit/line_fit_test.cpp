#include "fit/line_fit.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.hpp"

namespace lockstep::fit {
namespace {

TEST(LineFit, finds_latency_and_inverse_bandwidth_of_exact_times) {
    // t = 3 us + S / (20 GB/s)
    std::vector<double> bytes, seconds;
    for (double size = 1024; size < 3e8; size *= 4) {
        bytes.push_back(size);
        seconds.push_back(3e-6 + size / 20e9);
    }
    for (const Weighting weighting : {Weighting::absolute, Weighting::relative}) {
        const Line line = fit_line(bytes, seconds, weighting, Sign::non_negative);
        EXPECT_NEAR(line.alpha / 3e-6, 1, 1e-8);
        EXPECT_NEAR(1 / line.beta / 20e9, 1, 1e-9);
        EXPECT_NEAR(line.at(1e6) / (3e-6 + 5e-5), 1, 1e-9);
        EXPECT_EQ(line.degrees_of_freedom, static_cast<int>(bytes.size()) - 2);
    }
}

TEST(LineFit, relative_weighting_lets_small_values_count) {
    // One constant through 1 and 3 at equal x spread: y = a with weights 1 and 1/9 is (1 + 3/9) / (1 + 1/9) = 1.2.
    // Symmetric x make the slope of {(-1, 1), (1, 1), (-1, 3), (1, 3)} zero.
    const Line line = fit_line(std::vector<double>{-1, 1, -1, 1}, std::vector<double>{1, 1, 3, 3}, Weighting::relative);
    EXPECT_NEAR(line.alpha, 1.2, 1e-14);
    EXPECT_NEAR(line.beta, 0, 1e-14);
    EXPECT_NEAR(line.residual_sum, 2 * (0.04 + 1.8 * 1.8 / 9), 1e-13);
}

TEST(LineFit, a_negative_latency_is_held_at_zero_when_asked) {
    // (1, 1), (2, 3): the free line is -1 + 2x; through the origin b = (1 + 6) / (1 + 4) = 1.4.
    const std::vector<double> x{1, 2};
    const std::vector<double> y{1, 3};
    EXPECT_NEAR(fit_line(x, y).alpha, -1, 1e-14);
    const Line held = fit_line(x, y, Weighting::absolute, Sign::non_negative);
    EXPECT_EQ(held.alpha, 0);
    EXPECT_NEAR(held.beta, 1.4, 1e-14);
    EXPECT_EQ(held.degrees_of_freedom, 1);
}

TEST(LineFit, one_distinct_x_is_refused) {
    EXPECT_THROW(fit_line(std::vector<double>{2, 2}, std::vector<double>{1, 3}), IncompleteError);
    EXPECT_THROW(fit_line(std::vector<double>{}, std::vector<double>{}), IncompleteError);
    EXPECT_THROW(fit_line(std::vector<double>{1}, std::vector<double>{}), LogicError);
    EXPECT_THROW(fit_line(std::vector<double>{1, 2}, std::vector<double>{0, 1}, Weighting::relative), LogicError);
}

}  // namespace
}  // namespace lockstep::fit
