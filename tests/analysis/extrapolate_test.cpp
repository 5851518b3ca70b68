#include <gtest/gtest.h>

#include "analysis/extrapolate.hpp"

namespace lockstep::analysis {
namespace {

/// 16 passes take 10 s and 24 take 14 s: 0.5 s a pass; 100 passes take 2 + 50 = 52 s, and 8 samples a pass give
/// 800 / 52 a second. MFU counts 100 / 24 times the flops in 52 / 14 times the time.
TEST(Extrapolation, is_linear_in_the_passes) {
    RunFindings fewer, more;
    fewer.global_batch = 128;
    more.global_batch = 192;
    fewer.step_time.median = Seconds{10};
    more.step_time.median = Seconds{14};
    more.throughput = 192.0 / 14;
    more.mfu = 0.42;
    fewer.breakdown.compute = Seconds{8};
    more.breakdown.compute = Seconds{12};
    fewer.breakdown.bubble = more.breakdown.bubble = Seconds{2};
    const RunFindings all = extrapolate_passes(fewer, more, {16, 24, 100});
    EXPECT_DOUBLE_EQ(all.step_time.median.value, 52);
    EXPECT_DOUBLE_EQ(all.breakdown.compute.value, 50);
    EXPECT_DOUBLE_EQ(all.breakdown.bubble.value, 2);
    EXPECT_EQ(all.global_batch, 800);
    EXPECT_DOUBLE_EQ(all.throughput, 800.0 / 52);
    EXPECT_DOUBLE_EQ(*all.mfu, 0.42 * 100 / 24 * 14 / 52);
    EXPECT_EQ(all.passes, "100 passes, from steps of 16 and 24");
}

/// Exposed 1 s of 4 (share 0.75) at 16 passes and 1.5 s of 6 at 24: 6.25 s of 25 at 100.
TEST(Extrapolation, of_the_overlapped_share_is_that_of_the_times) {
    RunFindings fewer, more;
    fewer.step_time.median = Seconds{10};
    more.step_time.median = Seconds{14};
    more.throughput = 1;
    fewer.overlapped_share = more.overlapped_share = 0.75;
    fewer.breakdown.exposed_communication = Seconds{1};
    more.breakdown.exposed_communication = Seconds{1.5};
    EXPECT_DOUBLE_EQ(extrapolate_passes(fewer, more, {16, 24, 100}).overlapped_share, 0.75);
}

/// What shrinks with the passes is gone, not negative.
TEST(Extrapolation, gives_no_negative_part) {
    RunFindings fewer, more;
    fewer.step_time.median = more.step_time.median = Seconds{1};
    more.throughput = 1;
    fewer.breakdown.launch = Seconds{0.02};
    more.breakdown.launch = Seconds{0.01};
    EXPECT_EQ(extrapolate_passes(fewer, more, {16, 24, 100}).breakdown.launch, Seconds{});
}

}  // namespace
}  // namespace lockstep::analysis
