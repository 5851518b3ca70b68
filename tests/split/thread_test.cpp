// Split plans with ranks as threads: no send completes before its receive is there.
#include <gtest/gtest.h>

#include "split/split_cases.hpp"

namespace lockstep::split {
namespace {

class OnThreads : public testing::TestWithParam<Case> {};

TEST_P(OnThreads, loss_and_gradients_are_those_of_the_unsplit_step) {
    const Case& one = GetParam();
    world::run_thread_world(one.ranks, [&](world::World& world) {
        const drive::NumericReport report = run_case(world, one);
        EXPECT_EQ(report.gradients, model_of(one.model).parameters.size());
        EXPECT_GT(report.loss_split, 0);
    });
}

INSTANTIATE_TEST_SUITE_P(Plans, OnThreads, testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace lockstep::split
