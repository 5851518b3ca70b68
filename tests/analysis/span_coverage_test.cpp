#include "analysis/span_coverage.hpp"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::analysis {
namespace {

SpanCoverage of(std::int64_t steps, const std::set<std::int64_t>& with_spans) {
    SpanCoverage coverage;
    for (std::int64_t step = 0; step < steps; ++step) coverage.add(step, with_spans.count(step) > 0);
    return coverage;
}

TEST(SpanCoverage, the_interval_is_seen_in_the_steps_that_have_spans) {
    EXPECT_EQ(of(4, {0, 1, 2, 3}).interval(), 1);
    EXPECT_EQ(of(7, {0, 3, 6}).interval(), 3);
    EXPECT_EQ(of(8, {0, 1, 2, 4, 6}).interval(), 2);
    EXPECT_EQ(of(20, {0, 1, 2, 7, 14}).interval(), 7);
}

TEST(SpanCoverage, what_is_no_interval_is_called_none) {
    EXPECT_EQ(of(5, {}).interval(), std::nullopt);
    EXPECT_EQ(of(12, {0, 1, 2, 7}).interval(), std::nullopt);      // 7, or more: the run was too short to tell
    EXPECT_EQ(of(30, {0, 1, 2, 7, 14}).interval(), std::nullopt);  // step 21 and 28 have none
    EXPECT_EQ(of(20, {0, 5, 9, 18}).interval(), std::nullopt);
    EXPECT_EQ(of(9, {0, 1, 2}).interval(), std::nullopt);
}

TEST(SpanCoverage, the_text_says_which_steps_and_what_all_would_cost) {
    // 2600 events of 0.5 us are 1.3 ms of a step of 100 ms.
    const Seconds cost{2600 * 0.5e-6}, step{0.1};
    EXPECT_EQ(of(20, {0, 1, 2, 7, 14}).text(cost, step),
              "every 7th step (recording them in all would cost 1.3 % of a step)");
    EXPECT_EQ(of(2, {0, 1}).text(cost, step), "every step (recording them costs 1.3 % of a step)");
    EXPECT_EQ(of(2, {0, 1}).text(std::nullopt, step), "every step");
    EXPECT_EQ(of(5, {0, 2, 4}).text(std::nullopt, step), "every 2nd step");
    EXPECT_EQ(of(23, {0, 11, 22}).text(std::nullopt, step), "every 11th step");
    EXPECT_EQ(of(45, {0, 22, 44}).text(std::nullopt, step), "every 22nd step");
    EXPECT_EQ(of(12, {0, 1, 2, 7}).text(std::nullopt, step), "4 of 12 steps");
    EXPECT_EQ(of(5, {}).text(cost, step), "no step");
}

}  // namespace
}  // namespace lockstep::analysis
