#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/catalog.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_data;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Read {
    Machine machine;
    std::vector<std::string> errors;
};

Read read(const std::string& text) {
    config::Diagnostics diagnostics;
    Machine machine = load_machine(shipped_data(), config::parse_text(text, "m.yaml"), diagnostics);
    return {std::move(machine), diagnostics.errors()};
}

/// A node of `vertices` and `links` (each a line of the list, from line 5 on).
Read read_node(const std::string& vertices, const std::vector<std::string>& links, const std::string& more = "") {
    std::string text = "title: T\ndevice: v100-sxm2-16gb\nvertices: {" + vertices + "}\nlinks:\n";
    for (const auto& link : links) text += "  - [" + link + "]\n";
    return read(text + more);
}

TEST(MachineFile, ranges_link_every_vertex_of_one_with_every_vertex_of_the_other) {
    const auto [machine, errors] = read_node("gpu: 4, nvswitch: 2", {"gpu0-3, nvswitch0-1, nvlink, 3"});
    EXPECT_THAT(errors, IsEmpty());
    ASSERT_EQ(machine.node.links.size(), 8U);
    for (const Link& link : machine.node.links) {
        EXPECT_EQ(link.count, 3);
        EXPECT_EQ(link.per_direction, 75.0_GBps);  // 3 links of the device's 25 GB/s
    }
}

TEST(MachineFile, a_link_can_state_its_own_rate_and_a_list_of_ends) {
    const auto [machine, errors] = read_node(
        "gpu: 3, pcie_switch: 1", {"[gpu0, gpu2], pcie_switch0, pcie, 1, 4 GB/s", "gpu1, pcie_switch0, pcie"});
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(machine.node.links[1].per_direction, 4_GBps);
    EXPECT_EQ(machine.node.links[2].per_direction, 15.75_GBps);  // the device's PCIe 3 x16
}

TEST(MachineFile, what_hangs_below_a_cpu_gets_its_numa_node) {
    const auto [machine, errors] =
        read_node("gpu: 2, pcie_switch: 1, cpu: 2",
                  {"gpu0, pcie_switch0, pcie", "pcie_switch0, cpu1, pcie", "gpu1, cpu0, pcie", "cpu0, cpu1, socket"},
                  "numa: [4, 6]\nrates: {socket: 20 GB/s}\n");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(machine.node.vertices[machine.node.gpu(0).index()].numa_node, 6);
    EXPECT_EQ(machine.node.vertices[machine.node.gpu(1).index()].numa_node, 4);
}

TEST(MachineFile, links_to_unknown_vertices_are_refused_at_their_place) {
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink", "gpu0, gpu7, nvlink"}).errors,
                ElementsAre(AllOf(StartsWith("m.yaml:6:12: links: "), HasSubstr("'gpu7'"))));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink", "gpu0, gpus, nvlink"}).errors,
                ElementsAre(HasSubstr("'gpus' is no vertex")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink", "gpu1-0, gpu0, nvlink"}).errors,
                ElementsAre(HasSubstr("'gpu1-0' is no vertex")));
}

TEST(MachineFile, impossible_links_are_refused) {
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu0, nvlink"}).errors, ElementsAre(HasSubstr("linked with itself")));
    EXPECT_THAT(read_node("gpu: 2, cpu: 1", {"gpu0, cpu0, nvlink"}).errors, ElementsAre(HasSubstr("can't join")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink", "gpu1, gpu0, nvlink"}).errors,
                ElementsAre(AllOf(StartsWith("m.yaml:6:"), HasSubstr("linked twice"))));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlnk"}).errors, ElementsAre(HasSubstr("did you mean 'nvlink'")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1"}).errors, ElementsAre(HasSubstr("a link wants")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink, 0"}).errors, ElementsAre(HasSubstr("at least 1, got '0'")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink, 1.5"}).errors, ElementsAre(HasSubstr("'1.5'")));
}

TEST(MachineFile, more_nvlinks_than_the_device_has_are_refused) {
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink, 7"}).errors,
                Contains(HasSubstr("gpu0 has 7 NVLinks, but v100-sxm2-16gb has 6")));
}

TEST(MachineFile, zero_negative_and_unknown_rates_are_refused) {
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink, 1, 0 GB/s"}).errors, ElementsAre(HasSubstr("above 0")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink, 1, -3 GB/s"}).errors, ElementsAre(HasSubstr("negative")));
    EXPECT_THAT(read_node("gpu: 2", {"gpu0, gpu1, nvlink, 1, 25"}).errors, ElementsAre(HasSubstr("bandwidth")));
    EXPECT_THAT(read_node("gpu: 2, cpu: 2", {"gpu0, cpu0, pcie", "gpu1, cpu1, pcie", "cpu0, cpu1, socket"}).errors,
                ElementsAre(HasSubstr("rates: {socket: 20 GB/s}")));
}

TEST(MachineFile, gpus_that_cant_reach_each_other_are_refused) {
    EXPECT_THAT(read_node("gpu: 4", {"gpu0, gpu1, nvlink", "gpu2, gpu3, nvlink"}).errors,
                ElementsAre(HasSubstr("gpu0 can't reach gpu2"), HasSubstr("gpu0 can't reach gpu3")));
    EXPECT_THAT(read_node("gpu: 2, nic: 1", {"gpu0, gpu1, nvlink"}).errors, ElementsAre(HasSubstr("nic0 has no link")));
    EXPECT_THAT(read_node("gpu: 0", {}).errors, ElementsAre(StartsWith("m.yaml:3:17: gpu: ")));
}

TEST(MachineFile, all_errors_of_a_file_are_reported_at_once) {
    const auto errors = read(
                            "title: T\ndevice: v100-sxm2-16gb\nvertices: {gpu: 2, gpuu: 1}\nnuma: [0]\n"
                            "host_bridges: many\nlinks: [[gpu0, gpu5, nvlink], [gpu0, gpu1, wire]]\ncolor: red\n")
                            .errors;
    EXPECT_EQ(errors.size(), 6U) << ::testing::PrintToString(errors);
}

TEST(MachineFile, unknown_device_is_refused_where_it_is_written) {
    EXPECT_THAT(read("title: T\ndevice: v100\nvertices: {gpu: 1}\n").errors, ElementsAre(StartsWith("m.yaml:2:9: ")));
}

TEST(Cluster, is_count_nodes_of_another_machine_on_a_network) {
    const auto [machine, errors] = read("{node: dgx-a100-80gb, count: 4, network: ib-hdr-8}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(machine.devices(), 32);
    ASSERT_TRUE(machine.network.has_value());
    EXPECT_EQ(machine.network->per_nic, 25_GBps);  // HDR: 200 Gb/s
    EXPECT_EQ(machine.network->nics_per_node, 8);
    EXPECT_FALSE(machine.network->sources.empty());
}

TEST(Cluster, network_can_be_written_in_place) {
    const auto [machine, errors] =
        read("{node: dgx-1v-16gb, count: 2, network: {per_nic: 100 Gb/s, latency: 2 us, oversubscription: 2}}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(machine.network->per_nic, 12.5_GBps);
    EXPECT_DOUBLE_EQ(machine.network->oversubscription, 2);
}

TEST(Cluster, network_says_how_many_nodes_share_a_leaf_and_whether_by_rails) {
    const std::string head = "{node: dgx-1v-16gb, count: 8, network: {per_nic: 100 Gb/s, latency: 2 us";
    const auto [plain, no_errors] = read(head + "}}");
    EXPECT_EQ(plain.network->nodes_per_leaf, 1);
    EXPECT_FALSE(plain.network->has_rails);
    const auto [machine, errors] = read(head + ", oversubscription: 2, nodes_per_leaf: 4, rails: true}}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(machine.network->nodes_per_leaf, 4);
    EXPECT_TRUE(machine.network->has_rails);
    EXPECT_THAT(read(head + ", rails: true}}").errors, ElementsAre(HasSubstr("give nodes_per_leaf")));
    EXPECT_THAT(read(head + ", nodes_per_leaf: 0}}").errors, ElementsAre(HasSubstr("nodes_per_leaf")));
}

TEST(Cluster, count_zero_a_missing_network_and_unknown_names_are_refused) {
    EXPECT_THAT(read("{node: dgx-2, count: 0, network: ib-edr-4}").errors,
                ElementsAre(AllOf(StartsWith("m.yaml:1:22: count: "), HasSubstr("from 1 to"))));
    EXPECT_THAT(read("{node: dgx-2, count: 2}").errors, ElementsAre(HasSubstr("'network' is missing")));
    EXPECT_THAT(read("{node: dgx-2, count: 2, network: ib-ndr-4}").errors, ElementsAre(HasSubstr("ib-ndr-8")));
    EXPECT_THAT(read("{node: dgx-3, count: 2, network: ib-edr-4}").errors, ElementsAre(HasSubstr("dgx-2")));
    EXPECT_THAT(read("{node: dgx-2, count: 2, network: {per_nic: 0 GB/s, latency: 1 us}}").errors,
                ElementsAre(HasSubstr("must be above 0")));
    EXPECT_THAT(read("[dgx-2]").errors, ElementsAre(HasSubstr("wants a name")));
}

}  // namespace
}  // namespace lockstep::machine
