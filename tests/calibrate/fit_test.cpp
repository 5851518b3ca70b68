#include "calibrate/fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "calibrate/gpu_points.hpp"
#include "cost/collective_cost.hpp"

namespace lockstep::calibrate {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

/// Two GPUs on 4 NVLinks of 25 GB/s, 100 TFLOPS of bf16 and 1 TB/s.
machine::Machine two_gpus() {
    machine::Machine m;
    m.name = "two";
    m.device.name = "d";
    m.device.peaks = {{MathType::bf16, 100_TFLOPS, std::nullopt, true},
                      {MathType::fp32, 20_TFLOPS, std::nullopt, false}};
    m.device.memory_bandwidth = 1000_GBps;
    for (int i = 0; i < 2; ++i) m.node.vertices.push_back({machine::VertexKind::gpu, "gpu" + std::to_string(i), i, -1});
    m.node.links.push_back({machine::VertexId{0}, machine::VertexId{1}, machine::LinkKind::nvlink, 4, 100_GBps, {}});
    m.calibration.source = "guesses";
    m.calibration.constant_sources = {"attention: a paper"};
    return m;
}

/// t = (F + h) / (P e) + o with h = 4 GFLOP, e = 0.8, o = 5 us.
WorkPoint product(double n, MathType math = MathType::bf16, double peak = 100e12) {
    const double work = 2 * n * n * n;
    return {"product", "", math, Flops{work}, Seconds{(work + 4e9) / (peak * 0.8) + 5e-6}};
}
DevicePoints device_points() {
    DevicePoints points;
    for (const double n : {128.0, 512.0, 2048.0, 8192.0}) points.products.push_back(product(n));
    points.memory = 900_GBps;
    points.kernel_overhead = 5_us;
    // 60 GFLOP and the 4 of the ramp at half of the peak: 64e9 / 50e12 s.
    points.convolutions.push_back(
        {"layer1 3x3 forward", "", MathType::bf16, Flops{60e9}, Seconds{64e9 / 50e12 + 5e-6}});
    return points;
}

TEST(FitDevice, finds_the_constants_that_made_the_times) {
    machine::Machine m = two_gpus();
    const auto comparisons = fit_device(m, device_points(), "measured by a test");
    EXPECT_NEAR(m.calibration.gemm, 0.8, 1e-6);
    EXPECT_NEAR(m.calibration.gemm_half_work_gflop, 4, 1e-5);
    EXPECT_NEAR(m.calibration.convolution, 0.5, 1e-6);
    EXPECT_DOUBLE_EQ(m.calibration.memory, 0.9);
    EXPECT_DOUBLE_EQ(m.calibration.kernel_overhead.value, 5e-6);
    EXPECT_EQ(comparisons.size(), 5U);
    for (const Comparison& c : comparisons) EXPECT_NEAR(c.residual(), 0, 1e-6) << c.what;
    EXPECT_THAT(m.calibration.constant_sources,
                AllOf(Contains("gemm: measured by a test (bf16)"), Contains("memory: measured by a test")));
}

TEST(FitDevice, a_share_is_at_most_the_peak) {
    machine::Machine m = two_gpus();
    m.device.peaks[0].dense = 50_TFLOPS;  // of a device that reaches 80
    fit_device(m, device_points(), "t");
    EXPECT_DOUBLE_EQ(m.calibration.gemm, 1);
    EXPECT_LE(m.calibration.convolution, 1);
}

TEST(FitDevice, a_device_without_peaks_gets_what_its_products_grow_to) {
    machine::Machine m = two_gpus();
    m.device.peaks.clear();
    DevicePoints points = device_points();
    for (const double n : {128.0, 512.0, 2048.0}) points.products.push_back(product(n, MathType::fp32, 10e12));
    fit_device(m, points, "t");
    ASSERT_TRUE(m.device.peak(MathType::bf16) && m.device.peak(MathType::fp32));
    EXPECT_NEAR(m.device.peak(MathType::bf16)->value, 80e12, 1e6);
    EXPECT_NEAR(m.device.peak(MathType::fp32)->value, 8e12, 1e6);
    EXPECT_NEAR(m.calibration.gemm, 1, 1e-6);
    EXPECT_THAT(m.device.sources, Contains(HasSubstr("measured matrix products")));
}

TEST(FitDevice, one_size_of_products_is_too_few) {
    machine::Machine m = two_gpus();
    DevicePoints points = device_points();
    points.products.resize(1);
    EXPECT_THROW(fit_device(m, points, "t"), IncompleteError);
}

/// t = b + s h + f S / (C l): b = 10 us, h = 2 us, l = 0.5 of the 4 channels of 25 GB/s.
std::vector<CollectivePoint> collective_points() {
    std::vector<CollectivePoint> points;
    for (double bytes = 8; bytes <= 256 << 20; bytes *= 8) {
        points.push_back({step::CollectiveKind::all_reduce, Bytes{bytes}, Seconds{10e-6 + 2 * 2e-6 + bytes / 50e9}});
        points.push_back({step::CollectiveKind::all_gather, Bytes{bytes}, Seconds{10e-6 + 2e-6 + bytes / 2 / 50e9}});
    }
    return points;
}

TEST(FitCollectives, tells_steps_from_the_base_by_all_reduces_and_all_gathers) {
    machine::Machine m = two_gpus();
    const auto comparisons = fit_collectives(m, 2, collective_points(), "measured by a test");
    EXPECT_NEAR(m.calibration.collective_base.value, 10e-6, 1e-11);
    EXPECT_NEAR(m.calibration.per_hop.value, 2e-6, 1e-11);
    EXPECT_NEAR(m.calibration.link, 0.5, 1e-6);
    for (const Comparison& c : comparisons) EXPECT_NEAR(c.residual(), 0, 1e-6) << c.what << " " << c.size;
    EXPECT_THAT(m.calibration.constant_sources, Contains("link: measured by a test (2 ranks)"));
}

TEST(FitCollectives, finds_the_constants_of_simple_though_small_sizes_take_other_protocols) {
    machine::Machine m = two_gpus();
    m.device.compute_capability = "8.0";
    m.calibration.collective_base = 20_us;
    m.calibration.per_hop = 3_us;
    m.calibration.link = 0.7;
    std::vector<int> ranks{0, 1};
    const cost::Wires wires = cost::find_wires(m, m.place(2), ranks);
    std::vector<CollectivePoint> points;
    bool has_ll = false;
    for (double bytes = 8; bytes <= 256 << 20; bytes *= 4)
        for (const auto kind : {step::CollectiveKind::all_reduce, step::CollectiveKind::all_gather}) {
            const auto choice = cost::choose_collective(m.calibration, wires, kind, Bytes{bytes});
            has_ll = has_ll || choice.protocol == machine::CollectiveProtocol::ll;
            points.push_back({kind, Bytes{bytes}, choice.time.latency + choice.time.transfer});
        }
    EXPECT_TRUE(has_ll);
    m.calibration = {};
    fit_collectives(m, 2, points, "t");
    EXPECT_NEAR(m.calibration.collective_base.value, 20e-6, 1e-8);
    EXPECT_NEAR(m.calibration.per_hop.value, 3e-6, 1e-8);
    EXPECT_NEAR(m.calibration.link, 0.7, 1e-4);
}

TEST(FitCollectives, half_of_the_sizes_predict_the_other_half) {
    machine::Machine m = two_gpus();
    std::vector<CollectivePoint> half;
    const auto all = collective_points();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (i % 4 < 2) half.push_back(all[i]);
    fit_collectives(m, 2, half, "t");
    EXPECT_NEAR(m.calibration.link, 0.5, 1e-6);
}

TEST(FitCollectives, one_kind_of_one_size_is_too_few) {
    machine::Machine m = two_gpus();
    EXPECT_THROW(fit_collectives(m, 2, {{step::CollectiveKind::all_reduce, Bytes{8}, 1_us}}, "t"), IncompleteError);
}

TEST(Fit, what_was_not_measured_says_so_with_its_own_source) {
    machine::Machine m = two_gpus();
    fit_device(m, device_points(), "measured by a test");
    name_unmeasured(m.calibration, "measured by a test");
    EXPECT_EQ(m.calibration.source, "measured by a test");
    EXPECT_EQ(m.calibration.constant_sources.size(), machine::constant_names().size());
    EXPECT_THAT(m.calibration.constant_sources,
                AllOf(Contains("attention: not measured here; a paper"), Contains("link: not measured here; guesses"),
                      Contains("gemm: measured by a test (bf16)")));
}

TEST(GpuPoints, have_the_time_of_each_rate) {
    gpu::DeviceMeasurement measured;
    measured.products = {{MathType::bf16, 100, FlopRate{1e9}, "a"}};
    measured.convolutions = {
        {"layer1 3x3", step::Pass::backward_data, MathType::bf16, FlopRate{2e9}, "a", Flops{1e9}, 8, 224}};
    const DevicePoints points = points_of(measured);
    EXPECT_NEAR(points.products.at(0).time.value, 2e-3, 1e-12);  // 2 x 100^3 / 1e9
    EXPECT_NEAR(points.convolutions.at(0).time.value, 0.5, 1e-12);
    EXPECT_EQ(points.convolutions.at(0).what, "layer1 3x3 backward data");
    EXPECT_EQ(points.convolutions.at(0).size, "8 x 224 x 224");
}

}  // namespace
}  // namespace lockstep::calibrate
