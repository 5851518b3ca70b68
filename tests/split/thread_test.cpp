// Split plans with ranks as threads: no send completes before its receive is there.
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(SplitMemory, a_rank_allocates_what_was_predicted_within_2_percent) {
    const std::vector<Case> all = cases();
    if (std::none_of(all.begin(), all.end(), [](const Case& one) { return one.model == Case::Model::gpt_small; }))
        GTEST_SKIP() << "the models large enough for this are left out where they would take minutes";
    for (const Case& one : all) {
        if (one.model != Case::Model::gpt_small) continue;
        world::run_thread_world(one.ranks, [&](world::World& world) {
            const Allocation allocation = allocation_of(world, one);
            EXPECT_GE(allocation.allocated.value, allocation.predicted.value) << one.name << " rank " << world.rank();
            EXPECT_LE(allocation.allocated.value, 1.02 * allocation.predicted.value)
                << one.name << " rank " << world.rank();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, OnThreads, testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace lockstep::split
