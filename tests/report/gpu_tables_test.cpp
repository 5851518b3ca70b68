#include "report/gpu_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/calibration_tables.hpp"

namespace lockstep::report {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Gpu h100(int ordinal) {
    Gpu gpu;
    gpu.facts.ordinal = ordinal;
    gpu.facts.name = "NVIDIA H100 80GB HBM3";
    gpu.facts.uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
    gpu.facts.pci_bus_id = "0000:0" + std::to_string(ordinal) + ":00.0";
    gpu.facts.compute_major = 9;
    gpu.facts.multiprocessors = 132;
    gpu.facts.memory = 80_GiB;
    gpu.facts.free_memory = 79_GiB;
    gpu.facts.memory_bandwidth = 3350_GBps;
    gpu.facts.clock = Frequency{1980e6};
    gpu.facts.numa_node = 1;
    gpu.links.pcie = gpu::PcieLink{5, 16, 5, 16};
    gpu.links.nv_links = {{"", 18}};
    return gpu;
}
gpu::DeviceMeasurement measured() {
    gpu::DeviceMeasurement m;
    m.products = {{MathType::fp32, 1024, 50_TFLOPS, "a"},
                  {MathType::bf16, 1024, 400_TFLOPS, "a"},
                  {MathType::bf16, 8192, 750_TFLOPS, "a"}};
    m.convolutions = {{"layer1 3x3", step::Pass::forward, MathType::bf16, 300_TFLOPS, "a", Flops{1e9}, 64, 224},
                      {"layer1 3x3", step::Pass::forward, MathType::fp32, 30_TFLOPS, "a", Flops{1e9}, 8, 224},
                      {"layer1 3x3", step::Pass::backward_data, MathType::bf16, 250_TFLOPS, "a", Flops{1e9}, 64, 224}};
    m.copy = 3000_GBps;
    m.add = 3015_GBps;
    m.host_to_device = m.device_to_host = 55_GBps;
    m.launch = 2_us;
    m.kernel = 1_us;
    m.took = 5_s;
    return m;
}
machine::Device with_peaks() {
    machine::Device device;
    device.name = "h100";
    device.peaks = {{MathType::bf16, 1000_TFLOPS, std::nullopt, true}};
    device.memory_bandwidth = 3350_GBps;
    return device;
}
std::size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

TEST(GpuTables, say_what_each_gpu_is_and_how_it_is_linked_within_100_columns) {
    Gpu second = h100(1);
    second.links.nv_links = {{h100(0).facts.pci_bus_id, 4}, {"0000:99:00.0", 2}};
    const std::string text = format_gpus({h100(0), second});
    EXPECT_THAT(text, ContainsRegex("0 +NVIDIA H100 80GB HBM3 +9.0 +132 +1980 MHz +80 GiB +79 GiB +3.35 TB/s +no"));
    EXPECT_THAT(text, ContainsRegex("0000:00:00.0 +GPU-01234567-.*1 +5 x16 +5 x16"));
    EXPECT_THAT(text, HasSubstr("NVLinks of GPU 0: 18 to switches"));
    EXPECT_THAT(text, HasSubstr("NVLinks of GPU 1: 4 to GPU 0, 2 to 0000:99:00.0"));
    EXPECT_THAT(text, Not(HasSubstr("warning")));
    EXPECT_LE(widest_line(text), 100U);
}

TEST(GpuTables, warn_of_pcie_links_below_what_is_possible_and_of_what_is_not_told) {
    Gpu gpu = h100(0);
    gpu.links.pcie = gpu::PcieLink{1, 8, 5, 16};
    EXPECT_THAT(format_gpus({gpu}), AllOf(HasSubstr("8 PCIe lanes of 16"), HasSubstr("generation 1 of 5")));
    gpu.links = {};
    gpu.links.untold = "NVML is not there";
    gpu.facts.clock = {};
    EXPECT_THAT(format_gpus({gpu}), AllOf(HasSubstr("NVML is not there"), Not(HasSubstr("0 MHz"))));
    EXPECT_LE(widest_line(format_gpus({gpu})), 100U);
}

TEST(GpuTables, rates_stand_beside_the_peaks_that_are_known) {
    const std::string text = format_gpu_rates(h100(0).facts, with_peaks(), measured());
    EXPECT_THAT(text, ContainsRegex("1024 +50 TFLOP/s +400 TFLOP/s \\(40 %\\)"));
    EXPECT_THAT(text, ContainsRegex("8192 +- +750 TFLOP/s \\(75 %\\)"));
    EXPECT_THAT(text, HasSubstr("3.02 TB/s (90 %)"));
    EXPECT_THAT(text, ContainsRegex("layer1 3x3 +forward +64 x 224 +30 TFLOP/s \\(8 x 224\\) +300 TFLOP/s"));
    EXPECT_THAT(text, AllOf(HasSubstr("Measured rates of GPU 0"), Not(HasSubstr("test double"))));
    EXPECT_LE(widest_line(text), 100U);
    EXPECT_THAT(format_gpu_rates(h100(0).facts, {}, measured()), HasSubstr("no peaks are known"));
}

TEST(GpuTables, rates_of_a_test_double_are_no_measurement) {
    gpu::GpuFacts facts = h100(0).facts;
    facts.is_test_double = true;
    const std::string text = format_gpu_rates(facts, {}, measured());
    EXPECT_THAT(text, AllOf(HasSubstr("test double"), HasSubstr("no measurement"), Not(HasSubstr("Measured"))));
}

TEST(GpuTables, json_has_base_units_and_null_for_what_is_not_told) {
    Gpu gpu = h100(0);
    gpu.links.pcie.reset();
    const std::string text = gpus_json({gpu}, with_peaks(), measured()).dump(-1);
    EXPECT_THAT(text, AllOf(HasSubstr("\"pcie\":null"), HasSubstr("\"to\":\"switches\",\"links\":18"),
                            HasSubstr("\"share_of_peak\":0.75"), HasSubstr("\"share_of_peak\":null")));
}

TEST(CalibrationTables, show_each_point_with_its_residual_and_the_median) {
    using Kind = calibrate::Comparison::Kind;
    machine::Calibration calibration;
    calibration.source = "measured by a test";
    const std::vector<calibrate::Comparison> points{{Kind::product, "bf16 product", "128 x 128 x 128", 10_us, 11_us},
                                                    {Kind::collective, "all-reduce", "8 B", 100_us, 96_us},
                                                    {Kind::collective, "all-reduce", "256 MiB", 1_ms, 1_ms}};
    const std::string text = format_calibration(calibration, points);
    EXPECT_THAT(text, ContainsRegex("bf16 product +128 x 128 x 128 +10 us +11 us +\\+10 %"));
    EXPECT_THAT(text, ContainsRegex("all-reduce +8 B +100 us +96 us +-4 %"));
    EXPECT_THAT(text,
                AllOf(HasSubstr("Median residual: products 10 %, collectives 2 %"), HasSubstr("measured by a test")));
    EXPECT_LE(widest_line(text), 100U);
    EXPECT_THAT(comparisons_json(points).dump(-1), HasSubstr("\"fitted_s\":"));
}

}  // namespace
}  // namespace lockstep::report
