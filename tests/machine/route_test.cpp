#include "machine/route.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_machine;

Route between(const Machine& m, int a, int b) { return find_route(m.node, m.node.gpu(a), m.node.gpu(b)); }

TEST(Route, of_a_vertex_to_itself_is_empty_and_unlimited) {
    const Machine m = shipped_machine("dgx-1v-16gb");
    const Route route = between(m, 3, 3);
    EXPECT_TRUE(route.links.empty());
    EXPECT_EQ(route.proximity, Proximity::self);
    EXPECT_TRUE(std::isinf(route.bandwidth.value));
}

TEST(Route, direct_nvlinks_carry_their_count_times_the_rate_of_one) {
    const Machine m = shipped_machine("dgx-1v-16gb");
    EXPECT_EQ(between(m, 0, 1).bandwidth, 25_GBps);
    EXPECT_EQ(between(m, 0, 3).bandwidth, 50_GBps);
    EXPECT_EQ(between(m, 0, 3).nvlinks, 2);
    EXPECT_EQ(between(m, 0, 3).links.size(), 1U);
}

TEST(Route, without_nvlink_goes_over_pcie_and_sockets_but_never_through_a_gpu) {
    const Machine m = shipped_machine("dgx-1v-16gb");
    const Route route = between(m, 0, 5);  // gpu0, switch, cpu0, cpu1, switch, gpu5
    EXPECT_EQ(route.links.size(), 5U);
    EXPECT_EQ(route.proximity, Proximity::sys);
    EXPECT_EQ(route.bandwidth, 15.75_GBps);  // PCIe 3 x16, below the 38.4 of two QPI links
    EXPECT_EQ(route.nvlinks, 0);
}

TEST(Route, through_nvswitch_stripes_over_all_links_of_a_gpu) {
    const Machine m = shipped_machine("dgx-a100-40gb");
    const Route route = between(m, 0, 7);
    EXPECT_EQ(route.nvlinks, 12);
    EXPECT_EQ(route.bandwidth, 300_GBps);
    EXPECT_EQ(route.links.size(), 12U);  // a bundle of 2 to each of 6 switches, up and down
}

TEST(Route, across_the_boards_of_a_dgx_2_crosses_the_links_between_switches) {
    const Machine m = shipped_machine("dgx-2");
    EXPECT_EQ(between(m, 0, 1).links.size(), 12U);
    const Route route = between(m, 0, 15);
    EXPECT_EQ(route.links.size(), 18U);  // 6 up, 6 between twins, 6 down
    EXPECT_EQ(route.bandwidth, 150_GBps);
    EXPECT_EQ(route.nvlinks, 6);
}

TEST(Route, without_peer_access_goes_up_to_the_cpu_though_a_switch_is_shared) {
    Machine m = shipped_machine("8x-rtx3090-pcie");
    EXPECT_EQ(between(m, 0, 1).links.size(), 4U);  // gpu0, switch, cpu, switch, gpu1
    EXPECT_EQ(between(m, 0, 1).proximity, Proximity::pix);
    m.node.peer_access = PeerAccess::direct;
    EXPECT_EQ(between(m, 0, 1).links.size(), 2U);
}

TEST(Route, proximity_tells_switches_bridges_and_sockets_apart) {
    // gpu0 and gpu1 below one switch, gpu2 below a second one chained to it, gpu3 at a port of the CPU, gpu4 beyond.
    Topology t;
    for (int i = 0; i < 5; ++i) t.vertices.push_back({VertexKind::gpu, "gpu" + std::to_string(i), i, -1});
    t.vertices.push_back({VertexKind::pcie_switch, "pcie_switch0", 0, -1});
    t.vertices.push_back({VertexKind::pcie_switch, "pcie_switch1", 1, -1});
    t.vertices.push_back({VertexKind::cpu, "cpu0", 0, 0});
    t.vertices.push_back({VertexKind::cpu, "cpu1", 1, 1});
    const auto link = [&](int a, int b, LinkKind kind) {
        t.links.push_back({VertexId{a}, VertexId{b}, kind, 1, 16_GBps, {}});
    };
    for (const int gpu : {0, 1}) link(gpu, 5, LinkKind::pcie);
    link(2, 6, LinkKind::pcie);
    link(6, 5, LinkKind::pcie);
    link(5, 7, LinkKind::pcie);
    link(3, 7, LinkKind::pcie);
    link(4, 8, LinkKind::pcie);
    link(7, 8, LinkKind::socket);
    const auto proximity = [&](int a, int b) { return find_route(t, VertexId{a}, VertexId{b}).proximity; };
    EXPECT_EQ(proximity(0, 1), Proximity::pix);
    EXPECT_EQ(proximity(0, 2), Proximity::pxb);
    EXPECT_EQ(proximity(0, 3), Proximity::node);
    EXPECT_EQ(proximity(0, 4), Proximity::sys);
    t.host_bridges = HostBridges::one_per_cpu;
    EXPECT_EQ(proximity(0, 3), Proximity::phb);
}

TEST(Route, that_is_not_there_is_an_error_that_names_both_ends) {
    Topology t;
    t.vertices = {{VertexKind::gpu, "gpu0", 0, -1}, {VertexKind::gpu, "gpu1", 1, -1}};
    EXPECT_THROW(find_route(t, VertexId{0}, VertexId{1}), RuntimeError);
}

}  // namespace
}  // namespace lockstep::machine
