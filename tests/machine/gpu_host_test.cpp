#include "machine/gpu_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/rings.hpp"
#include "machine/smi_matrix.hpp"
#include "machine/topology_check.hpp"

namespace lockstep::machine {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Device hopper() {
    Device device;
    device.name = "d";
    device.compute_capability = "9.0";
    return device;
}
GpuPlace place(int i, int numa_node) {
    GpuPlace place;
    place.pci_bus_id = "0000:0" + std::to_string(i) + ":00.0";
    place.numa_node = numa_node;
    place.pcie_generation = 5;
    place.pcie_lanes = 16;
    return place;
}
std::string cell(const Machine& m, int a, int b) { return smi_cell(m.node, m.node.gpu(a), m.node.gpu(b)); }

TEST(GpuHost, nvlinks_between_gpus_are_as_both_ends_tell_them) {
    std::vector<GpuPlace> gpus{place(0, 0), place(1, 0)};
    gpus[0].peers = {{gpus[1].pci_bus_id, 4}};
    gpus[1].peers = {{gpus[0].pci_bus_id, 4}};
    const Machine m = make_gpu_node(hopper(), gpus);
    EXPECT_EQ(cell(m, 0, 1), "NV4");
    EXPECT_EQ(m.device.nvlink.links, 4);
    EXPECT_EQ(rings_of_node(m.node)->total(), 100_GBps);  // 4 of 25 GB/s each way
    EXPECT_THAT(find_faults(m.node, m.device), IsEmpty());
    EXPECT_THAT(m.notes, Contains(HasSubstr("NVLink of compute capability 9.0")));
}

TEST(GpuHost, switches_are_one_vertex_and_a_note_says_so) {
    std::vector<GpuPlace> gpus;
    for (int i = 0; i < 8; ++i) {
        gpus.push_back(place(i, i / 4));
        gpus.back().switch_links = 18;
    }
    const Machine m = make_gpu_node(hopper(), gpus);
    EXPECT_EQ(cell(m, 0, 7), "NV18");
    EXPECT_EQ(rings_of_node(m.node)->total(), 450_GBps);
    EXPECT_THAT(find_faults(m.node, m.device), IsEmpty());
    EXPECT_THAT(m.notes, AllOf(Contains(HasSubstr("NVSwitches are one vertex")), Contains(HasSubstr("between CPUs"))));
}

TEST(GpuHost, gpus_below_one_bridge_share_a_pcie_switch) {
    std::vector<GpuPlace> gpus;
    for (int i = 0; i < 4; ++i) gpus.push_back(place(i, i / 2));
    gpus[0].bridges = {"0000:12:00.0", "0000:11:00.0", "0000:10:00.0"};
    gpus[1].bridges = {"0000:12:01.0", "0000:11:00.0", "0000:10:00.0"};
    gpus[2].bridges = {"0000:80:00.0"};
    gpus[3].bridges = {"0000:90:00.0"};
    const Machine m = make_gpu_node(hopper(), gpus);
    EXPECT_EQ(cell(m, 0, 1), "PIX");
    EXPECT_THAT(cell(m, 2, 3), Not("PIX"));
    EXPECT_EQ(cell(m, 0, 2), "SYS");
    EXPECT_EQ(m.node.vertices[m.node.gpu(3).index()].numa_node, 1);
    EXPECT_THAT(find_faults(m.node, m.device), IsEmpty());
}

TEST(GpuHost, what_is_not_told_is_assumed_and_named) {
    GpuPlace unknown;
    unknown.pci_bus_id = "0000:01:00.0";
    const Machine m = make_gpu_node(hopper(), {unknown});
    EXPECT_THAT(m.notes, AllOf(Contains(HasSubstr("PCIe links are not told")), Contains(HasSubstr("NUMA nodes"))));
    EXPECT_THAT(find_faults(m.node, m.device), IsEmpty());
}

// 16 GT/s x 128/130 / 8 bits x 16 lanes = 31.5 GB/s
TEST(GpuHost, a_pcie_link_carries_its_transfers_less_the_encoding) {
    EXPECT_NEAR(pcie_bandwidth(4, 16).value, 31.508e9, 1e6);
    EXPECT_NEAR(pcie_bandwidth(1, 1).value, 0.25e9, 1);
    EXPECT_EQ(pcie_bandwidth(0, 16).value, 0);
}

}  // namespace
}  // namespace lockstep::machine
