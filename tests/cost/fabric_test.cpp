// Which links traffic loads, worked out by hand.
#include "cost/fabric.hpp"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "config/data_path.hpp"
#include "cost/small_machine.hpp"
#include "machine/catalog.hpp"

namespace lockstep::cost {
namespace {

using testing::ElementsAre;

machine::Machine shipped(const std::string& yaml) {
    const config::DataPath data(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR});
    config::Diagnostics diagnostics;
    auto machine = machine::load_machine(data, config::parse_text(yaml, "test"), diagnostics);
    diagnostics.throw_if_any();
    return machine;
}

std::vector<int> range(int first, int past, int by = 1) {
    std::vector<int> ranks;
    for (int rank = first; rank < past; rank += by) ranks.push_back(rank);
    return ranks;
}

double sum(const Loads& loads) {
    return std::accumulate(loads.begin(), loads.end(), 0.0,
                           [](double total, const step::LinkLoad& load) { return total + load.share; });
}

std::vector<std::vector<int>> nics(const machine::Topology& node, int count) {
    const NodeLinks links(node, std::vector<Bandwidth>(static_cast<std::size_t>(count), 25_GBps));
    std::vector<std::vector<int>> result;
    for (int gpu = 0; gpu < node.gpus(); ++gpu) result.push_back(links.nics_of(gpu));
    return result;
}

TEST(NodeLinks, a_GPU_has_the_NICs_nearest_to_it) {
    const auto dgx_a100 = shipped("dgx-a100-40gb").node;
    for (int gpu = 0; gpu < 8; ++gpu) EXPECT_THAT(nics(dgx_a100, 8)[static_cast<std::size_t>(gpu)], ElementsAre(gpu));
    // Two GPUs and a NIC below each PCIe switch.
    const auto dgx_1 = shipped("dgx-1v-16gb").node;
    for (int gpu = 0; gpu < 8; ++gpu) EXPECT_THAT(nics(dgx_1, 4)[static_cast<std::size_t>(gpu)], ElementsAre(gpu / 2));
    // One for all.
    for (const auto& own : nics(shipped("8x-rtx3090-pcie").node, 1)) EXPECT_THAT(own, ElementsAre(0));
}

TEST(NodeLinks, NICs_that_the_topology_does_not_place_are_shared_out_in_order) {
    const auto node = a100_machine(2).node;
    EXPECT_THAT(nics(node, 2), ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(0), ElementsAre(0),
                                           ElementsAre(1), ElementsAre(1), ElementsAre(1), ElementsAre(1)));
    EXPECT_THAT(nics(node, 16)[3], ElementsAre(6, 7));
}

TEST(NodeLinks, a_missing_NIC_leaves_its_GPU_to_the_next_ones) {
    std::vector<Bandwidth> rates(8, 25_GBps);
    rates[3] = {};
    const NodeLinks links(shipped("dgx-a100-40gb").node, rates);
    // GPUs 2 and 3 are as near to NIC 2 as to NIC 3.
    EXPECT_THAT(links.nics_of(3), ElementsAre(2));
    EXPECT_THAT(links.nics_of(4), ElementsAre(4));
}

TEST(NodeLinks, ports_of_a_switched_GPU_carry_all_its_NVLinks) {
    const NodeLinks links(shipped("dgx-a100-40gb").node, {});
    const Loads& hop = links.hop(0, 5);
    ASSERT_EQ(hop.size(), 2u);  // out of one, into the other
    for (const step::LinkLoad& load : hop) {
        EXPECT_EQ(load.share, 1);
        EXPECT_EQ(links.capacities()[static_cast<std::size_t>(load.link)], 300_GBps);
    }
    EXPECT_NE(links.hop(5, 0)[0].link, hop[0].link);
}

TEST(Fabric, a_ring_in_a_switched_node_loads_each_port_once) {
    const machine::Machine m = shipped("dgx-a100-40gb");
    const machine::Placement placement = m.place(8);
    const Fabric fabric(m, placement);
    const Loads ring = fabric.ring(range(0, 8));
    EXPECT_EQ(ring.size(), 16u);
    for (const step::LinkLoad& load : ring) EXPECT_DOUBLE_EQ(load.share, 1);
}

TEST(Fabric, rings_of_the_cube_mesh_use_every_link_alike) {
    // Six channels of 25 GB/s over eight GPUs: 48 hops of 1/6 each; single links carry one channel a direction, double
    // ones two.
    const machine::Machine m = shipped("dgx-1v-16gb");
    const machine::Placement placement = m.place(8);
    const Fabric fabric(m, placement);
    const Loads ring = fabric.ring(range(0, 8));
    EXPECT_NEAR(sum(ring), 8, 1e-12);
    const auto capacities = fabric.capacities();
    for (const step::LinkLoad& load : ring) {
        const double channels = load.share * 6;
        const double links =
            std::round(capacities[static_cast<std::size_t>(load.link)] / (25_GBps * m.calibration.link));
        EXPECT_NEAR(channels, links, 1e-9);
    }
}

TEST(Fabric, a_ring_over_PCIe_crosses_the_sockets_once_each_way) {
    const machine::Machine m = shipped("8x-rtx3090-pcie");
    const machine::Placement placement = m.place(8);
    const Fabric fabric(m, placement);
    // Eight hops through host memory: up and down by each card and each switch (8 x 4), and two over the sockets.
    EXPECT_NEAR(sum(fabric.ring(range(0, 8))), 8 * 4 + 2, 1e-12);
}

TEST(Fabric, between_nodes_a_ring_leaves_by_all_NICs_of_its_GPUs) {
    const machine::Machine m = shipped("{node: dgx-a100-40gb, count: 2, network: ib-hdr-8}");
    const machine::Placement placement = m.place(16);
    const Fabric fabric(m, placement);
    EXPECT_EQ(fabric.network_rate(range(0, 16)), 200_GBps);
    EXPECT_EQ(fabric.network_rate({3, 11}), 25_GBps);
    EXPECT_EQ(fabric.network_rate(3, 12), 25_GBps);
    EXPECT_EQ(fabric.network_rate(range(0, 8)).value, 0);
    machine::Machine slow = m;
    slow.nics.assign(8, 25_GBps);
    slow.nics[2] = 5_GBps;  // each NIC carries its eighth: the slowest counts
    const Fabric of_slow(slow, placement);
    EXPECT_EQ(of_slow.network_rate(range(0, 16)), 40_GBps);
}

TEST(Fabric, uplinks_of_oversubscribed_nodes_limit_what_leaves_them) {
    machine::Machine m = shipped("{node: dgx-a100-40gb, count: 4, network: ib-hdr-8}");
    m.network->oversubscription = 4;
    const machine::Placement placement = m.place(32);
    const Fabric fabric(m, placement);
    EXPECT_EQ(fabric.network_rate(range(0, 32)), 50_GBps);
    EXPECT_EQ(fabric.network_rate({0, 8}), 25_GBps);  // alone one NIC is less than the uplink
}

TEST(Fabric, what_stays_below_a_leaf_switch_does_not_load_its_uplink) {
    machine::Machine m = shipped("{node: dgx-a100-40gb, count: 4, network: ib-hdr-8}");
    m.network->oversubscription = 8;
    m.network->nodes_per_leaf = 2;
    const machine::Placement placement = m.place(32);
    const Fabric fabric(m, placement);
    // Leaves of 16 NICs of 25 GB/s, 8 : 1: 50 GB/s up and down.
    EXPECT_EQ(fabric.network_rate(range(0, 16)), 200_GBps);
    EXPECT_EQ(fabric.network_rate(range(0, 32)), 50_GBps);
    EXPECT_EQ(fabric.message(0, 8).back().share, 1);
    EXPECT_EQ(fabric.message(0, 16).size(), fabric.message(0, 8).size() + 2);  // up one leaf, down the other
}

TEST(Fabric, on_rails_neighbours_of_a_group_meet_in_one_switch) {
    machine::Machine m = shipped("{node: dgx-a100-40gb, count: 4, network: ib-hdr-8}");
    m.network->oversubscription = 2;
    m.network->nodes_per_leaf = 2;
    m.network->has_rails = true;
    const machine::Placement placement = m.place(32);
    const Fabric fabric(m, placement);
    const std::size_t same_rail = fabric.message(3, 11).size();
    EXPECT_EQ(fabric.message(3, 19).size(), same_rail + 2);  // another group: up and down
    // Another rail of the group: over NVLink to the GPU whose NIC is on it, then no uplink either.
    EXPECT_EQ(fabric.message(3, 12).size(), same_rail + 2);  // two ports
    // A rail of two nodes, 2 : 1, lets 25 GB/s out of its group.
    EXPECT_EQ(fabric.network_rate({3, 19}), 25_GBps);
    m.network->oversubscription = 4;
    EXPECT_EQ(Fabric(m, placement).network_rate({3, 19}), 12.5_GBps);
}

TEST(Fabric, pairs_of_all_to_all_load_what_they_cross) {
    const machine::Machine m = shipped("{node: dgx-a100-40gb, count: 2, network: ib-hdr-8}");
    const machine::Placement placement = m.place(16);
    const Fabric fabric(m, placement);
    // Of the 15 parts a rank sends 7 stay in the node and 8 leave it by its NIC: per byte sent 7/15 out of and into its
    // port, 8/15 out of and into its NIC and its PCIe link.
    const Loads loads = fabric.all_to_all(range(0, 16));
    const double nvlink = 2.0 * 7 / 15, nic = 2.0 * 8 / 15;
    double inside = 0, network = 0;
    const auto capacities = fabric.capacities();
    for (const step::LinkLoad& load : loads) {
        const double rate = capacities[static_cast<std::size_t>(load.link)].value;
        if (rate > 200e9) inside += load.share;
        if (std::abs(rate - 25e9 * 0.92) < 1) network += load.share;
    }
    EXPECT_NEAR(inside, 16 * nvlink, 1e-9);
    EXPECT_NEAR(network, 16 * nic, 1e-9);
}

TEST(Fabric, wants_a_network_between_nodes) {
    machine::Machine m = a100_machine(2);
    const machine::Placement placement = m.place(16);
    m.network.reset();
    EXPECT_THROW(Fabric(m, placement), InputError);
}

}  // namespace
}  // namespace lockstep::cost
