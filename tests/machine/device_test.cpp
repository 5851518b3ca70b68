#include "machine/device.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::machine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view small_device = R"(title: Test GPU
peaks:
  - {type: fp32, dense: 10 TFLOPS}
  - {type: fp16, dense: 20 TFLOPS}
  - {type: fp16, dense: 80 TFLOPS, sparse: 160 TFLOPS, tensor_core: true}
memory: 16 GiB
memory_bandwidth: 900 GB/s
sms: 80
nvlink: {generation: 2, links: 6, per_link: 25 GB/s}
)";

std::vector<std::string> errors_of(const std::string& text) {
    config::Diagnostics diagnostics;
    read_device(config::parse_text(text, "gpu.yaml"), diagnostics);
    return diagnostics.errors();
}

std::string replaced(std::string_view from, std::string_view to) {
    std::string text(small_device);
    return text.replace(text.find(from), from.size(), to);
}

TEST(Device, peak_is_the_highest_dense_rate_of_a_type) {
    config::Diagnostics diagnostics;
    const Device device = read_device(config::parse_text(small_device, "gpu.yaml"), diagnostics);
    EXPECT_THAT(diagnostics.errors(), IsEmpty());
    EXPECT_EQ(device.peak(MathType::fp16), 80_TFLOPS);  // of the tensor cores; the sparse 160 doesn't count
    EXPECT_EQ(device.peak(MathType::fp32), 10_TFLOPS);
    EXPECT_FALSE(device.peak(MathType::bf16).has_value());
    EXPECT_EQ(device.memory, 16_GiB);
    EXPECT_EQ(device.nvlink.links, 6);
}

TEST(Device, unknown_key_names_the_nearest_one_with_its_place) {
    EXPECT_THAT(errors_of(replaced("memory_bandwidth", "memory_bandwith")),
                ::testing::Contains(AllOf(StartsWith("gpu.yaml:7:1: "), HasSubstr("memory_bandwidth"))));
}

TEST(Device, duplicate_key_is_refused) {
    EXPECT_THROW(errors_of(fmt::format("{}sms: 80\n", small_device)), InputError);
}

TEST(Device, number_without_unit_is_refused) {
    EXPECT_THAT(errors_of(replaced("16 GiB", "16")),
                ElementsAre(AllOf(StartsWith("gpu.yaml:6:9: memory: "), HasSubstr("16"))));
    EXPECT_THAT(errors_of(replaced("900 GB/s", "900 GB")), ElementsAre(StartsWith("gpu.yaml:7:19: ")));
}

TEST(Device, zero_and_negative_rates_are_refused) {
    EXPECT_THAT(errors_of(replaced("900 GB/s", "0 GB/s")), ElementsAre(HasSubstr("must be above 0")));
    EXPECT_THAT(errors_of(replaced("25 GB/s", "-25 GB/s")), ElementsAre(HasSubstr("negative")));
    EXPECT_THAT(errors_of(replaced("10 TFLOPS", "0 TFLOPS")), ElementsAre(HasSubstr("must be above 0")));
    EXPECT_THAT(errors_of(replaced("sms: 80", "sms: 0")), ElementsAre(StartsWith("gpu.yaml:8:6: sms: ")));
}

TEST(Device, sparse_below_dense_is_refused_as_swapped) {
    EXPECT_THAT(errors_of(replaced("160 TFLOPS", "40 TFLOPS")), ElementsAre(HasSubstr("is below dense")));
}

TEST(Device, unknown_and_repeated_types_of_arithmetic_are_refused) {
    EXPECT_THAT(errors_of(replaced("type: fp32", "type: fp31")), ElementsAre(HasSubstr("'fp32'")));
    EXPECT_THAT(errors_of(replaced("type: fp16", "type: fp32")), ElementsAre(HasSubstr("there twice")));
}

TEST(Device, missing_peaks_and_empty_peaks_are_refused) {
    EXPECT_THAT(errors_of("title: T\nmemory: 1 GiB\nmemory_bandwidth: 1 GB/s\nsms: 1\n"),
                ElementsAre(HasSubstr("'peaks' is missing")));
    EXPECT_THAT(errors_of("title: T\npeaks: []\nmemory: 1 GiB\nmemory_bandwidth: 1 GB/s\nsms: 1\n"),
                ElementsAre(HasSubstr("at least one rate")));
}

TEST(Device, all_errors_of_a_file_are_reported_at_once) {
    EXPECT_EQ(errors_of("title: T\npeaks: [{type: fp99, dense: 1}]\nmemory: 4\nsms: -1\ncolour: green\n").size(), 6U);
}

}  // namespace
}  // namespace lockstep::machine
