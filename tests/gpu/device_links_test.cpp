#include "gpu/device_links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeviceLinks, bridges_are_the_folders_above_a_device_nearest_first) {
    const fs::path root = fs::temp_directory_path() / ("lockstep_links_" + std::to_string(getpid()));
    const fs::path device = root / "tree/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0/0000:15:00.0";
    fs::create_directories(device);
    fs::create_directories(root / "devices");
    fs::create_directory_symlink(device, root / "devices/0000:15:00.0");
    EXPECT_THAT(pci_bridges("0000:15:00.0", root / "devices"),
                ElementsAre("0000:12:04.0", "0000:11:00.0", "0000:10:01.0"));
    EXPECT_THAT(pci_bridges("0000:16:00.0", root / "devices"), IsEmpty());
    fs::remove_all(root);
}

TEST(DeviceLinks, without_nvml_there_is_a_reason_and_no_link) {
    const Variable none("LOCKSTEP_DOUBLE_DRIVER", "none");
    const GpuLinks links = links_of("0000:01:00.0");
    EXPECT_FALSE(links.untold.empty());
    EXPECT_FALSE(links.pcie.has_value());
    EXPECT_THAT(links.nv_links, IsEmpty());
}

}  // namespace
}  // namespace lockstep::gpu::testing
