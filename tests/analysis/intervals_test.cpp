#include "analysis/intervals.hpp"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::analysis {
namespace {

IntervalSet set(std::vector<std::pair<int, int>> pairs) {
    std::vector<Interval> intervals;
    for (auto [begin, end] : pairs) intervals.push_back({{begin}, {end}});
    return IntervalSet(std::move(intervals));
}

double ns(const IntervalSet& s) { return s.length().value * 1e9; }

TEST(Intervals, a_union_counts_overlap_once) {
    // [0,10) u [5,15) u [20,25) = 20
    EXPECT_NEAR(ns(set({{5, 15}, {20, 25}, {0, 10}})), 20, 1e-6);
    EXPECT_EQ(set({{5, 15}, {0, 10}}).intervals().size(), 1U);
}

TEST(Intervals, empty_and_reversed_ones_are_nothing) { EXPECT_EQ(set({{5, 5}, {9, 3}}).intervals().size(), 0U); }

TEST(Intervals, difference_and_intersection_add_up_to_the_whole) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> point(0, 200);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<std::pair<int, int>> a, b;
        for (int i = 0; i < 12; ++i) {
            a.emplace_back(point(random), point(random));
            b.emplace_back(point(random), point(random));
        }
        const IntervalSet x = set(a);
        const IntervalSet y = set(b);
        EXPECT_NEAR(ns(x.without(y)) + ns(x.intersected(y)), ns(x), 1e-6) << "seed 7, trial " << trial;
        EXPECT_NEAR(ns(x.united(y)), ns(x) + ns(y) - ns(x.intersected(y)), 1e-6) << "seed 7, trial " << trial;
    }
}

TEST(Intervals, a_window_clips) { EXPECT_NEAR(ns(set({{0, 10}, {20, 30}}).clipped({{5}, {25}})), 10, 1e-6); }

}  // namespace
}  // namespace lockstep::analysis
