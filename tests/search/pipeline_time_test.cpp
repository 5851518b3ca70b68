#include <gtest/gtest.h>

#include <algorithm>

#include "search/pipeline_time.hpp"

namespace lockstep::search {
namespace {

using plan::Schedule;

std::vector<StageTimes> equal_stages(std::size_t pp, std::size_t vpp, double forward, double backward, double message) {
    const auto chunks = static_cast<double>(vpp);
    StageTimes stage;
    stage.forward.assign(vpp, Seconds{forward / chunks});
    stage.backward.assign(vpp, Seconds{backward / chunks});
    stage.early.assign(vpp, Seconds{});
    stage.message = Seconds{message};
    return std::vector<StageTimes>(pp, stage);
}

double last_end(const std::vector<StageExtent>& extents) {
    double last = 0;
    for (const StageExtent& extent : extents) last = std::max(last, extent.end.value);
    return last;
}

/// T = (m + p - 1)(f + b) (Narayanan et al. 2019): p = 4, m = 8, f = 1, b = 2: 33.
TEST(PipelineTime, of_1f1b_and_gpipe_is_m_plus_p_minus_1_passes) {
    const auto stages = equal_stages(4, 1, 1, 2, 0);
    EXPECT_DOUBLE_EQ(last_end(pipeline_extents(Schedule::one_forward_one_backward, stages, 8)), 33);
    EXPECT_DOUBLE_EQ(last_end(pipeline_extents(Schedule::gpipe, stages, 8)), 33);
}

/// T = m (f + b) + (p - 1)(f + b) / v (Narayanan et al. 2021): p = 4, m = 8, v = 3: 24 + 3 = 27.
TEST(PipelineTime, of_the_interleaved_schedule_has_a_bubble_divided_by_the_chunks) {
    const auto stages = equal_stages(4, 3, 1, 2, 0);
    EXPECT_NEAR(last_end(pipeline_extents(Schedule::interleaved, stages, 8)), 27, 1e-12);
}

/// Two stages, one pass: f + message + f + b + message + b = 1 + 0.5 + 1 + 2 + 0.5 + 2.
TEST(PipelineTime, counts_messages_there_and_back) {
    const auto stages = equal_stages(2, 1, 1, 2, 0.5);
    const auto extents = pipeline_extents(Schedule::one_forward_one_backward, stages, 1);
    EXPECT_DOUBLE_EQ(extents[0].end.value, 7);
    EXPECT_DOUBLE_EQ(extents[1].begin.value, 1.5);
    EXPECT_DOUBLE_EQ(extents[1].end.value, 4.5);
}

/// The early second of a backward pass of 2 runs while the gradient is under way: of 2 x 0.5 s of messages one is
/// hidden.
TEST(PipelineTime, recomputes_while_the_gradient_is_under_way) {
    auto stages = equal_stages(2, 1, 1, 2, 0.5);
    stages[0].early = {Seconds{1}};
    EXPECT_DOUBLE_EQ(pipeline_extents(Schedule::one_forward_one_backward, stages, 1)[0].end.value, 6);
}

/// A stage twice as slow sets the pace: each further pass takes its 6 s.
TEST(PipelineTime, follows_the_slowest_stage) {
    auto stages = equal_stages(3, 1, 1, 2, 0);
    stages[2].forward = {Seconds{2}};
    stages[2].backward = {Seconds{4}};
    const double at_8 = last_end(pipeline_extents(Schedule::one_forward_one_backward, stages, 8));
    const double at_12 = last_end(pipeline_extents(Schedule::one_forward_one_backward, stages, 12));
    EXPECT_DOUBLE_EQ(at_12 - at_8, 24);
}

}  // namespace
}  // namespace lockstep::search
