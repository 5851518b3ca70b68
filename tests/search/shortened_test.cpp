#include <gtest/gtest.h>

#include <algorithm>

#include "plan/shortened.hpp"
#include "search/simulate_plan.hpp"
#include "search/subjects.hpp"

namespace lockstep::search {
namespace {

struct Case {
    std::string name;
    std::string framework, base, plan;
    double share = 1e-6;  ///< of the step time
};

class ShortenedStep : public testing::TestWithParam<Case> {};

/// time(m) = time(more) + (m - more) (time(more) - time(fewer)) / (more - fewer) once the pipeline is full. Spans are
/// rounded to nanoseconds, which extrapolation multiplies: 1e-6 of the step time. Under GPipe the host, far ahead in
/// the forward passes, finds its limit at one pass or another: 1e-3.
TEST_P(ShortenedStep, tells_time_breakdown_and_memory_of_the_whole_one) {
    const Case& c = GetParam();
    const SmallWorld world(small_gpt(c.base, 640, c.framework));
    const plan::Plan plan = world.plan(c.plan);
    ASSERT_TRUE(plan::shortened_passes(plan)) << plan.accumulation;
    const auto shortened = simulate_plan(world.subject(), plan);
    const auto whole = simulate_plan(world.subject(), plan, Length::whole);
    EXPECT_FALSE(shortened.passes.empty());
    EXPECT_TRUE(whole.passes.empty());
    const double time = whole.step_time.median.value;
    EXPECT_NEAR(shortened.step_time.median.value, time, c.share * time);
    EXPECT_NEAR(shortened.throughput, whole.throughput, c.share * whole.throughput);
    EXPECT_NEAR(*shortened.mfu, *whole.mfu, c.share);
    EXPECT_NEAR(*shortened.hfu, *whole.hfu, c.share);
    EXPECT_NEAR(shortened.overlapped_share, whole.overlapped_share, std::max(1e-4, c.share));
    using analysis::Breakdown;
    for (const auto part : {&Breakdown::compute, &Breakdown::exposed_communication, &Breakdown::wait,
                            &Breakdown::bubble, &Breakdown::optimizer, &Breakdown::launch, &Breakdown::idle})
        EXPECT_NEAR((shortened.breakdown.*part).value, (whole.breakdown.*part).value,
                    2 * std::max(5e-6, c.share) * time);
    EXPECT_NEAR(shortened.memory.total.value, whole.memory.total.value, 1);
    EXPECT_NEAR(shortened.memory.activations.value, whole.memory.activations.value, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ShortenedStep,
    testing::Values(Case{"alone", "megatron-lm-2021", "", "{tp: 2, zero: 0}"},
                    Case{"alone_zero_1_overlapped", "pytorch-ddp", "", "{tp: 2, zero: 1}"},
                    Case{"alone_zero_2", "megatron-lm-2021", "", "{zero: 2}"},
                    Case{"alone_zero_3", "megatron-lm-2021", "", "{zero: 3}"},
                    Case{"one_forward_one_backward", "megatron-lm-2021", "", "{tp: 2, pp: 4}"},
                    Case{"one_forward_one_backward_overlapped", "pytorch-ddp", "", "{tp: 2, pp: 4, zero: 1}"},
                    Case{"recomputed", "megatron-lm-2021", "", "{tp: 2, pp: 4, recompute: full}"},
                    Case{"zero_3", "megatron-lm-2021", "", "{pp: 4, zero: 3}"},
                    Case{"gpipe", "megatron-lm-2021", "plan: {schedule: gpipe}", "{tp: 2, pp: 4}", 1e-3},
                    Case{"interleaved", "megatron-lm-2021", "", "{tp: 2, pp: 4, vpp: 3, zero: 1}"},
                    Case{"interleaved_zero_2", "megatron-lm-2021", "", "{tp: 2, pp: 2, vpp: 6, zero: 2}"}),
    [](const auto& of) { return of.param.name; });

TEST(ShortenedPasses, are_multiples_of_the_stages_beyond_the_fill) {
    plan::Plan plan;
    plan.mesh.pp = 8;
    plan.accumulation = 1536;
    const auto passes = plan::shortened_passes(plan);
    ASSERT_TRUE(passes);
    EXPECT_EQ(passes->fewer, 16);
    EXPECT_EQ(passes->more, 24);
    // 10 at 16 and 14 at 24: 0.5 a pass, 2 + 0.5 x 1536.
    EXPECT_DOUBLE_EQ(passes->extrapolated(10.0, 14.0), 770);
    plan.accumulation = 40;
    EXPECT_FALSE(plan::shortened_passes(plan));
}

}  // namespace
}  // namespace lockstep::search
