// The host measurement gives plausible figures, equal on all ranks.
#include "cpu/host_benchmark.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::cpu::testing {
namespace {

TEST(HostBenchmark, ranks_agree_and_shares_and_rates_are_positive) {
    std::vector<HostMeasurement> all(2);
    world::run_thread_world(2, [&](world::World& world) { all[world.rank()] = measure_host(world, 1); });
    for (const HostMeasurement& m : all) {
        EXPECT_EQ(m.measured_ranks, 2);
        EXPECT_GT(m.gemm_fp32.value, 0);
        EXPECT_EQ(m.gemm_fp32, all[0].gemm_fp32);
        EXPECT_GT(m.convolution_share, 0);
        EXPECT_GT(m.attention_share, 0);
        EXPECT_GT(m.memory.value, 0);
        EXPECT_GT(m.op_overhead.value, 0);
        EXPECT_GT(m.all_reduce_bus.value, 0);
        EXPECT_GT(m.all_reduce_latency.value, 0);
        EXPECT_GE(m.compute_slowdown, 0);
        EXPECT_LT(m.compute_slowdown, 1);
        EXPECT_EQ(m.took, all[0].took);
        RecordProperty("gemm_gflops", std::to_string(m.gemm_fp32.value * 1e-9));
    }
}

TEST(HostBenchmark, a_rank_alone_has_no_all_reduce) {
    const auto world = world::make_self_world();
    const HostMeasurement m = measure_host(*world, 1);
    EXPECT_EQ(m.all_reduce_bus.value, 0);
    EXPECT_GT(m.gemm_fp32.value, 0);
}

}  // namespace
}  // namespace lockstep::cpu::testing
