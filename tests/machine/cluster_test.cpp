// Clusters of several kinds of nodes, and nodes with slow or missing links and NICs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "machine/catalog.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_data;
using ::testing::AllOf;
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

Read with_faults(const std::string& faults, const std::string& nodes = "node: dgx-a100-80gb, count: 4") {
    return read("{" + nodes + ", network: ib-hdr-8, faults: [" + faults + "]}");
}

TEST(MixedNodes, are_numbered_in_the_order_they_are_written) {
    const auto [m, errors] = read(
        "{nodes: [{node: dgx-a100-80gb, count: 2}, {node: dgx-h100, count: 1}, {node: dgx-a100-80gb}], network: "
        "ib-hdr-8}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(m.nodes, 4);
    EXPECT_EQ(m.devices(), 32);
    EXPECT_EQ(m.kinds(), 2);
    EXPECT_EQ(m.device_of(1).name, "a100-sxm4-80gb");
    EXPECT_EQ(m.device_of(2).name, "h100-sxm5-80gb");
    EXPECT_EQ(m.kind_of(3), m.kind_of(0));
    EXPECT_EQ(m.topology_of(2).links.size(), load_machine(shipped_data(), "dgx-h100").node.links.size());
    EXPECT_NE(m.calibration_of(0).source, m.calibration_of(2).source);
    EXPECT_EQ(m.name, "2xdgx-a100-80gb+1xdgx-h100+1xdgx-a100-80gb");
}

TEST(MixedNodes, of_one_name_are_all_of_kind_0) {
    const auto [m, errors] = read("{nodes: [{node: dgx-2, count: 2}, {node: dgx-2}], network: ib-edr-8}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(m.kinds(), 1);
    EXPECT_TRUE(m.kind_of_node.empty());
}

TEST(MixedNodes, the_smallest_device_is_looked_for_where_ranks_are) {
    const auto [m, errors] = read("{nodes: [{node: dgx-a100-80gb}, {node: dgx-a100-40gb}], network: ib-hdr-8}");
    EXPECT_EQ(m.smallest_device(m.place(8)).name, "a100-sxm4-80gb");
    EXPECT_EQ(m.smallest_device(m.place(9)).name, "a100-sxm4-40gb");
}

TEST(MixedNodes, of_different_device_counts_and_in_a_wrong_form_are_refused) {
    EXPECT_THAT(read("{nodes: [{node: dgx-2}, {node: dgx-h100}], network: ib-edr-8}").errors,
                ElementsAre(AllOf(StartsWith("m.yaml:1:32: "), HasSubstr("dgx-h100 has 8 devices and dgx-2 has 16"))));
    EXPECT_THAT(read("{nodes: [], network: ib-edr-8}").errors, ElementsAre(HasSubstr("empty list")));
    EXPECT_THAT(read("{nodes: [{node: dgx-2}], count: 2, network: ib-edr-8}").errors,
                ElementsAre(HasSubstr("write all nodes under nodes")));
    EXPECT_THAT(read("{nodes: [{node: dgx-2, cout: 2}], network: ib-edr-8}").errors,
                ElementsAre(HasSubstr("did you mean 'count'")));
    EXPECT_THAT(read("{nodes: [{node: dgx-2}, {node: dgx-2}]}").errors, ElementsAre(HasSubstr("2 nodes need one")));
}

TEST(Faults, change_the_links_of_their_node_alone) {
    const auto [m, errors] = with_faults("{node: 2, link: [nvswitch0, gpu2], rate: 0.5}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(m.kinds(), 2);
    EXPECT_EQ(m.kind_of(1), 0);
    EXPECT_EQ(m.kind_of(2), 1);
    int slow = 0;
    for (std::size_t i = 0; i < m.node.links.size(); ++i) {
        const Link &good = m.node.links[i], &bad = m.topology_of(2).links[i];
        if (good.per_direction == bad.per_direction) continue;
        EXPECT_EQ(bad.per_direction, 0.5 * good.per_direction);
        ++slow;
    }
    EXPECT_EQ(slow, 1);
    ASSERT_EQ(m.faults.size(), 1U);
    EXPECT_EQ(m.faults[0].node, 2);
    EXPECT_EQ(m.faults[0].text, "nvswitch0-gpu2 nvlink at 25 GB/s of 50 GB/s");
}

TEST(Faults, of_the_first_node_make_it_kind_0) {
    const auto [m, errors] = with_faults("{link: [gpu2, nvswitch0], missing: true}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(m.kind_of(0), 0);
    EXPECT_EQ(m.kind_of(3), 1);
    EXPECT_EQ(nvlinks_of(m.node, m.node.gpu(2)), 10);
    EXPECT_EQ(nvlinks_of(m.topology_of(1), m.node.gpu(2)), 12);
}

TEST(Faults, that_are_equal_make_nodes_of_equal_kind) {
    const auto [m, errors] = with_faults(
        "{node: 1, nic: 4, rate: 0.1}, {node: 3, nic: 4, rate: 0.1}, {node: 2, nic: 4, missing: true}, {node: 2, nic: "
        "5, rate: 10 GB/s}");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(m.kinds(), 3);
    EXPECT_EQ(m.kind_of(1), m.kind_of(3));
    EXPECT_EQ(m.nics_of(0), std::vector<Bandwidth>(8, 25_GBps));
    EXPECT_EQ(m.nics_of(1)[4], 2.5_GBps);
    EXPECT_EQ(m.nics_of(2)[4], Bandwidth{0});
    EXPECT_EQ(m.nics_of(2)[5], 10_GBps);
}

TEST(Faults, can_be_those_of_a_machine_of_one_node) {
    const auto [m, errors] = read(
        "title: T\ndevice: v100-sxm2-16gb\nvertices: {gpu: 2}\nlinks: [[gpu0, gpu1, nvlink, 2]]\n"
        "faults: [{link: [gpu0, gpu1], rate: 20 GB/s}]\n");
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(m.kinds(), 1);
    EXPECT_EQ(m.node.links[0].per_direction, 20_GBps);
}

TEST(Faults, of_what_isnt_there_are_refused_at_their_place) {
    EXPECT_THAT(with_faults("{node: 4, link: [gpu2, nvswitch0], rate: 0.5}").errors,
                ElementsAre(AllOf(StartsWith("m.yaml:1:61: "), HasSubstr("no node 4 (the machine has 4"))));
    EXPECT_THAT(with_faults("{link: [gpu2, nvswitch7], rate: 0.5}").errors,
                ElementsAre(HasSubstr("node 0 has no 'nvswitch7'")));
    EXPECT_THAT(with_faults("{link: [gpu2, gpu3], rate: 0.5}").errors,
                ElementsAre(HasSubstr("no link joins gpu2 and gpu3")));
    EXPECT_THAT(with_faults("{node: 1, nic: 8, rate: 0.5}").errors, ElementsAre(HasSubstr("use 0 to 7")));
    EXPECT_THAT(read("{node: dgx-h100, faults: [{nic: 0, missing: true}]}").errors,
                ElementsAre(HasSubstr("this machine has none")));
}

TEST(Faults, with_rates_that_leave_nothing_or_too_much_are_refused) {
    for (const std::string rate : {"0", "-0.5", "1", "1.5"})
        EXPECT_THAT(with_faults("{nic: 0, rate: " + rate + "}").errors, ElementsAre(HasSubstr("between 0 and 1")))
            << rate;
    EXPECT_THAT(with_faults("{nic: 0, rate: 0 GB/s}").errors, ElementsAre(HasSubstr("must be above 0")));
    EXPECT_THAT(with_faults("{nic: 0, rate: -2 GB/s}").errors, ElementsAre(HasSubstr("negative")));
    EXPECT_THAT(with_faults("{nic: 0, rate: 30 GB/s}").errors, ElementsAre(HasSubstr("normally carries 25 GB/s")));
    EXPECT_THAT(with_faults("{nic: 0, rate: fast}").errors, ElementsAre(HasSubstr("fast")));
    EXPECT_THAT(with_faults("{nic: 0}").errors, ElementsAre(HasSubstr("one of the two")));
    EXPECT_THAT(with_faults("{nic: 0, link: [gpu0, nvswitch0], missing: true}").errors,
                ElementsAre(HasSubstr("of one link or one nic")));
    EXPECT_THAT(with_faults("{link: [gpu0], missing: true}").errors, ElementsAre(HasSubstr("two ends")));
    EXPECT_THAT(with_faults("{nik: 0, missing: true}").errors,
                ElementsAre(HasSubstr("of one link or one nic"), HasSubstr("did you mean 'nic'")));
}

TEST(Faults, that_cut_something_off_are_refused) {
    EXPECT_THAT(read("title: T\ndevice: v100-sxm2-16gb\nvertices: {gpu: 2}\nlinks: [[gpu0, gpu1, nvlink, 2]]\n"
                     "faults: [{link: [gpu0, gpu1], missing: true}]\n")
                    .errors,
                ElementsAre(AllOf(StartsWith("m.yaml:5:10: "), HasSubstr("gpu0 can't reach gpu1"))));
    EXPECT_THAT(read("{node: dgx-2, count: 2, network: ib-edr-1, faults: [{node: 1, nic: 0, missing: true}]}").errors,
                ElementsAre(HasSubstr("node 1 is left without any NIC")));
}

}  // namespace
}  // namespace lockstep::machine
