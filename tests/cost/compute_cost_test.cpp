#include "cost/compute_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "cost/peak_rate.hpp"
#include "cost/small_machine.hpp"

namespace lockstep::cost {
namespace {

step::Op product(MathType math, Flops flops, Bytes bytes) {
    step::Op op;
    op.name = "product";
    op.kind = step::Compute{step::Gemm{}};
    op.math = math;
    op.flops = flops;
    op.bytes = bytes;
    return op;
}

TEST(ComputeCost, of_a_large_product_is_flops_over_the_reached_peak) {
    machine::Machine m = a100_machine();
    m.calibration.gemm = 0.8;
    m.calibration.gemm_half_work_gflop = 0;
    m.calibration.kernel_overhead = 4_us;
    // 4096^3: 137.4 GFlop at 312 TF x 0.8 = 550.6 us, over the memory time 100.7 MB / 1.32 TB/s = 76 us.
    const Flops flops{2.0 * 4096 * 4096 * 4096};
    const auto time =
        compute_time(m.device, m.calibration, {}, product(MathType::bf16, flops, Bytes{3.0 * 4096 * 4096 * 2}));
    EXPECT_NEAR(time.value, 550.6e-6 + 4e-6, 0.1e-6);
}

TEST(ComputeCost, reaches_half_the_efficiency_at_the_half_work_size) {
    machine::Machine m = a100_machine();
    m.calibration.gemm_half_work_gflop = 0.5;
    m.calibration.kernel_overhead = Seconds{0};
    const auto time = compute_time(m.device, m.calibration, {}, product(MathType::fp32, Flops{0.5e9}, Bytes{1}));
    EXPECT_DOUBLE_EQ(time.value, 2 * 0.5e9 / (19.5e12 * m.calibration.gemm));
}

TEST(ComputeCost, of_a_thin_product_is_its_memory_traffic) {
    machine::Machine m = a100_machine();
    m.calibration.memory = 0.8;
    m.calibration.kernel_overhead = Seconds{0};
    // 1.244 GB over 1555 GB/s x 0.8 = 1 ms
    const auto time = compute_time(m.device, m.calibration, {}, product(MathType::bf16, Flops{1e9}, Bytes{1.244e9}));
    EXPECT_DOUBLE_EQ(time.value, 1e-3);
}

TEST(ComputeCost, each_kind_has_its_efficiency) {
    machine::Machine m = a100_machine();
    m.calibration.gemm_half_work_gflop = 0;
    m.calibration.kernel_overhead = Seconds{0};
    step::Op op = product(MathType::fp16, Flops{312e9}, Bytes{1});
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, {}, op).value, 1e-3 / m.calibration.gemm);
    op.kind = step::Compute{step::Convolution{}};
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, {}, op).value, 1e-3 / m.calibration.convolution);
    op.kind = step::Compute{step::Attention{}};
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, {}, op).value, 1e-3 / m.calibration.attention);
    // Elementwise kernels use the fp32 units: 312 G / 19.5 T = 16 ms.
    op.kind = step::Compute{step::Elementwise{}};
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, {}, op).value, 16e-3);
}

TEST(ComputeCost, unfused_attention_pays_for_the_scores) {
    machine::Machine m = a100_machine();
    m.calibration.gemm_half_work_gflop = 0;
    m.calibration.kernel_overhead = Seconds{0};
    step::StepGraph graph;
    graph.tensors.resize(1);
    graph.tensors[0].dtype = DType::fp16;
    step::Attention attention;
    attention.batch = 32, attention.heads = 16, attention.seq = 512, attention.head_dim = 64;
    attention.algorithm = plan::AttentionAlgorithm::unfused;
    step::Op op = product(MathType::fp16, Flops{1e9}, Bytes{1e6});
    op.kind = step::Compute{attention};
    op.in = {{0}};
    // Scores: 32 x 16 x 512^2 = 134.2 M; 4 passes of 2 bytes = 1.0737 GB, and 1 MB of operands.
    const double bytes = 4.0 * 2 * 32 * 16 * 512 * 512 + 1e6;
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, graph, op).value,
                     1e9 / (312e12 * m.calibration.gemm) + bytes / (1555e9 * m.calibration.memory));
}

TEST(ComputeCost, an_input_copy_takes_at_least_its_pipeline) {
    machine::Machine m = a100_machine();
    m.calibration.kernel_overhead = Seconds{0};
    step::StepGraph graph;
    step::Tensor batch;
    batch.shape = Shape{8'000'000};  // 32 MB fp32: 1 ms over PCIe at 32 GB/s
    graph.tensors = {batch};
    step::Op op;
    op.name = "load";
    op.out = {{{0}, step::Access::overwrite}};
    op.kind = step::Copy{step::Copy::Kind::input, 8'000'000, 1, Seconds{0}};
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, graph, op).value, 1e-3);
    op.kind = step::Copy{step::Copy::Kind::input, 8'000'000, 1, Seconds{5e-3}};
    EXPECT_DOUBLE_EQ(compute_time(m.device, m.calibration, graph, op).value, 5e-3);
    m.device.pcie.per_direction = Bandwidth{0};
    EXPECT_THROW(compute_time(m.device, m.calibration, graph, op), InputError);
}

TEST(ComputeCost, of_a_host_sync_is_nothing_and_of_communication_a_mistake) {
    step::Op op;
    op.kind = step::HostSync{};
    EXPECT_EQ(compute_time(a100_machine().device, {}, {}, op).value, 0);
    op.kind = step::Collective{};
    EXPECT_THROW(compute_time(a100_machine().device, {}, {}, op), LogicError);
}

std::string refusal(const machine::Device& device, MathType math) {
    try {
        peak_rate(device, math);
    } catch (const InputError& error) { return error.what(); }
    return "accepted";
}

TEST(PeakRate, refuses_what_a_device_has_no_units_for) {
    EXPECT_EQ(refusal(v100(), MathType::bf16),
              "v100 has no bf16 units (its peaks: fp32, fp16); use precision fp16-amp");
    EXPECT_EQ(refusal(v100(), MathType::tf32), "v100 has no tf32 units (its peaks: fp32, fp16); use precision fp32");
    EXPECT_THAT(refusal(a100_machine().device, MathType::fp8), testing::EndsWith("use precision bf16"));
    EXPECT_EQ(peak_rate(v100(), MathType::fp32), 15.7_TFLOPS);
    EXPECT_EQ(peak_rate(v100(), MathType::fp16), 125_TFLOPS);
}

}  // namespace
}  // namespace lockstep::cost
