// The measurement of a GPU, on the double: that each figure is there and has its time. What a figure is worth shows
// only on a GPU.
#include "gpu/benchmark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "gpu/cuda_check.hpp"
#include "gpu/stopwatch.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::Gt;

TEST(GpuBenchmark, measures_each_kind_of_work) {
    BenchmarkOptions options;
    options.product_sizes = {16, 48};
    options.convolution_batch = 1;
    options.image_size = 32;
    options.attention_seq = 16;
    options.buffer_bytes = 1 << 16;
    options.budget = Seconds{1e-3};
    const DeviceMeasurement m = measure_device(options);
    ASSERT_EQ(m.products.size(), 4U * 2);  // fp32, tf32, fp16, bf16
    EXPECT_EQ(m.products[0].n, 16);
    EXPECT_EQ(m.products[7].math, MathType::bf16);
    EXPECT_THAT(m.products, Each(Field(&ProductRate::rate, Gt(FlopRate{}))));
    ASSERT_EQ(m.convolutions.size(), 4U * (7 * 3 - 1));  // the first layer sends no gradient back
    EXPECT_EQ(m.convolutions[1].name, "conv1 7x7");
    EXPECT_EQ(m.convolutions[1].pass, step::Pass::backward_weights);
    EXPECT_THAT(m.convolutions, Each(Field(&ConvolutionRate::rate, Gt(FlopRate{}))));
    ASSERT_EQ(m.attention.size(), 2U * 2);  // fp16 and bf16, forward and backward
    EXPECT_THAT(m.attention, Each(Field(&AttentionRate::rate, Gt(FlopRate{}))));
    for (const Bandwidth rate : {m.copy, m.add, m.host_to_device, m.device_to_host}) EXPECT_GT(rate, Bandwidth{});
    for (const Seconds time : {m.launch, m.kernel, m.took}) EXPECT_GT(time, Seconds{});
}

TEST(GpuBenchmark, a_stopwatch_tells_the_time_of_one_run_within_its_budget) {
    const Stopwatch watch(Seconds{0.05});
    const Nanoseconds begin = world::steady_now();
    const Seconds time = watch.time([](cudaStream_t stream) {
        check_cuda(cudaLaunchHostFunc(
                       stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, nullptr),
                   "cudaLaunchHostFunc");
    });
    EXPECT_GE(time, Seconds{2e-3});
    EXPECT_LT(time, Seconds{20e-3});
    EXPECT_LT((world::steady_now() - begin).seconds(), Seconds{1.0});
}

}  // namespace
}  // namespace lockstep::gpu::testing
