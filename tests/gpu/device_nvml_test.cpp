#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/nvml.hpp"
#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* first_gpu = "d0b1:0a:00.0";

NvmlDevice device(const std::string& pci_bus_id = first_gpu) {
    std::string why;
    return Nvml().device(pci_bus_id, why).value();
}

TEST(Nvml, a_sample_has_clocks_power_and_temperature_in_their_units) {
    std::vector<std::string> untold;
    const step::DeviceSample sample = device().sample(&untold);
    EXPECT_EQ(sample.sm_clock, Frequency{1.755e9});
    EXPECT_EQ(sample.memory_clock, Frequency{2.619e9});
    EXPECT_DOUBLE_EQ(sample.power.value().value, 412.5);
    EXPECT_DOUBLE_EQ(sample.power_limit.value().value, 700);
    EXPECT_EQ(sample.temperature, 50);
    EXPECT_EQ(sample.throttle, step::ThrottleReasons{});
    EXPECT_TRUE(untold.empty());
    EXPECT_EQ(device().most_sm_clock(), Frequency{1.98e9});
}

TEST(Nvml, reasons_for_low_clocks_are_words) {
    const Variable throttle("LOCKSTEP_DOUBLE_THROTTLE", std::to_string(0x4 | 0x40 | 0x1000));
    EXPECT_EQ(to_string(device().sample().throttle.value()), "power cap, hardware thermal slowdown, reason 0x1000");
}

TEST(Nvml, what_a_gpu_does_not_tell_is_missing_with_a_reason) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "nvmlDeviceGetPowerUsage:1:3");
    std::vector<std::string> untold;
    const step::DeviceSample sample = device().sample(&untold);
    EXPECT_FALSE(sample.power.has_value());
    EXPECT_THAT(untold, ElementsAre("power: Not Supported"));
    EXPECT_TRUE(sample.power_limit.has_value());
}

TEST(Nvml, without_a_driver_it_is_absent_with_a_reason) {
    const Variable driver("LOCKSTEP_DOUBLE_DRIVER", "none");
    const Nvml nvml;
    std::string why;
    EXPECT_FALSE(nvml.device(first_gpu, why).has_value());
    EXPECT_THAT(why, HasSubstr("NVML does not start: Driver Not Loaded"));
    EXPECT_FALSE(nvml.driver_version().has_value());
}

TEST(Nvml, an_unknown_gpu_is_none_with_a_reason) {
    std::string why;
    EXPECT_FALSE(Nvml().device("0000:01:00.0", why).has_value());
    EXPECT_EQ(why, "NVML about 0000:01:00.0: Not Found");
}

TEST(Nvml, nv_links_are_counted_by_peer) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "3");
    const auto links = device("d0b1:0b:00.0").nv_links();
    ASSERT_EQ(links.size(), 2U);
    EXPECT_EQ(links[0].pci_bus_id, "d0b1:0a:00.0");
    EXPECT_EQ(links[1].pci_bus_id, "d0b1:0c:00.0");
    EXPECT_EQ(links[0].links, 4);
    EXPECT_TRUE(device().pcie().has_value());
    const Variable many("LOCKSTEP_DOUBLE_DEVICES", "8");
    const auto to_switches = device().nv_links();
    ASSERT_EQ(to_switches.size(), 1U);
    EXPECT_EQ(to_switches[0].pci_bus_id, "");
    EXPECT_EQ(to_switches[0].links, 18);
}

TEST(Nvml, tells_the_pcie_link_and_whether_there_are_instances) {
    const PcieLink pcie = device().pcie().value();
    EXPECT_EQ(pcie.generation, 4);
    EXPECT_EQ(pcie.most_generation, 5);
    EXPECT_EQ(pcie.lanes, 16);
    EXPECT_FALSE(device().has_mig_instances());
    const Variable mig("LOCKSTEP_DOUBLE_MIG", "1");
    EXPECT_TRUE(device().has_mig_instances());
}

}  // namespace
}  // namespace lockstep::gpu::testing
