// What a GPU executor adds to the record of a run.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "contract/graphs.hpp"
#include "gpu/device_probe.hpp"
#include "gpu/gpu_executor.hpp"
#include "gpu/variable.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu::testing {
namespace {

class ExecutorRecord : public ::testing::Test {
protected:
    ExecutorRecord() {
        contract::Sketch sketch("fills", 1);
        const auto a = sketch.carried("a", {64}, step::Role::gradient);
        sketch.block("all", step::Phase::forward);
        sketch.op("fill", step::Compute{step::Fill{64, 3}}, {}, {{a, step::Access::overwrite}});
        sketch.collective("reduce", step::CollectiveKind::all_reduce, 64, a, a);
        graph_ = sketch.graph();
        graph_.micro_batch = graph_.global_batch = 1;
    }

    std::unique_ptr<GpuExecutor> make_executor(int record_every) {
        GpuOptions options;
        options.epoch = world::steady_now();
        options.record_every = record_every;
        auto executor = std::make_unique<GpuExecutor>(*world_, options, facts_);
        executor->prepare(graph_);
        return executor;
    }

    std::unique_ptr<world::World> world_ = world::make_self_world();
    GpuFacts facts_ = probe_devices().at(0);
    step::StepGraph graph_;
};

TEST_F(ExecutorRecord, steps_carry_the_state_of_their_gpu_taken_while_they_ran) {
    const Variable throttle("LOCKSTEP_DOUBLE_THROTTLE", "4");
    const auto executor = make_executor(0);
    EXPECT_TRUE(executor->info().samples_device);
    int sampled = 0;
    for (std::int64_t step = 0; step < 5000 && sampled < 2; ++step) {
        executor->enqueue(step);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const step::StepRecord record = executor->collect().front();
        if (!record.device) continue;
        ++sampled;
        EXPECT_GE(record.device->time, record.begin);
        EXPECT_EQ(record.device->sm_clock, Frequency{1755e6});
        EXPECT_TRUE(record.device->throttle->has(step::ThrottleReason::power_cap));
    }
    EXPECT_EQ(sampled, 2);
}

TEST_F(ExecutorRecord, the_executor_says_what_it_communicates_with_and_what_recording_costs) {
    const auto executor = make_executor(7);
    const step::ExecutorInfo info = executor->info();
    EXPECT_EQ(info.facts.at("communicator dp"), "1 rank: rank 0 (host " + world_->host() + ", GPU 0)");
    EXPECT_EQ(info.facts.at("nccl_algorithm"), "not recorded");
    EXPECT_EQ(info.facts.at("spans"), "every k-th step, k = 7");
    EXPECT_EQ(info.facts.at("device_samples"), "every 100 ms, by NVML");
    EXPECT_EQ(info.facts.at("library_algorithms"), "");
    ASSERT_TRUE(info.span_cost);
    EXPECT_GT(info.span_cost->value, 0);
}

TEST_F(ExecutorRecord, without_nvml_a_run_goes_on_and_says_why_it_has_no_samples) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "nvmlDeviceGetHandleByPciBusId_v2:1:15");
    const auto executor = make_executor(1);
    EXPECT_FALSE(executor->info().samples_device);
    EXPECT_NE(executor->info().facts.at("device_samples").find("GPU is lost"), std::string::npos);
    executor->enqueue(0);
    const step::StepRecord record = executor->collect().front();
    EXPECT_EQ(record.spans.size(), 2U);
    EXPECT_FALSE(record.device);
}

}  // namespace
}  // namespace lockstep::gpu::testing
