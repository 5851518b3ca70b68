#include "machine/rings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "machine/ring_search.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::first_gpus;
using test::shipped_machine;
using ::testing::ElementsAre;

RingChannels rings_of(const std::string& name, const std::vector<int>& gpus) {
    return find_rings(shipped_machine(name).node, gpus);
}

/// How often the rings use each ordered pair of GPUs.
std::map<std::pair<int, int>, int> uses(const std::vector<std::vector<int>>& rings) {
    std::map<std::pair<int, int>, int> result;
    for (const auto& ring : rings)
        for (std::size_t i = 0; i < ring.size(); ++i) ++result[{ring[i], ring[(i + 1) % ring.size()]}];
    return result;
}

TEST(Rings, on_the_hybrid_cube_mesh_use_every_nvlink_once_in_each_direction) {
    const Machine m = shipped_machine("dgx-1v-16gb");
    const RingChannels channels = find_rings(m.node, first_gpus(8));
    EXPECT_EQ(channels.rings.size(), 6U);  // 3 cycles, both ways round: 6 links at each GPU
    EXPECT_EQ(channels.total(), 150_GBps);
    EXPECT_EQ(channels.proximity, Proximity::nvlink);
    for (const auto& ring : channels.rings) EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(), 8U);
    const auto used = uses(channels.rings);
    for (const Link& link : m.node.links) {
        if (link.kind != LinkKind::nvlink) continue;
        const int a = m.node.vertices[link.a.index()].index, b = m.node.vertices[link.b.index()].index;
        EXPECT_EQ(used.at({a, b}), link.count) << a << " to " << b;
        EXPECT_EQ(used.at({b, a}), link.count) << b << " to " << a;
    }
}

TEST(Rings, through_nvswitch_are_as_many_as_a_gpu_has_links) {
    const struct {
        const char* machine;
        int gpus;
        std::size_t rings;
        Bandwidth total;
    } cases[] = {{"dgx-a100-40gb", 8, 12, 300_GBps}, {"dgx-a100-80gb", 2, 12, 300_GBps}, {"dgx-h100", 8, 18, 450_GBps},
                 {"dgx-h100", 5, 18, 450_GBps},      {"dgx-2", 16, 6, 150_GBps},         {"dgx-2", 4, 6, 150_GBps}};
    for (const auto& c : cases) {
        SCOPED_TRACE(c.machine);
        const RingChannels channels = rings_of(c.machine, first_gpus(c.gpus));
        EXPECT_EQ(channels.rings.size(), c.rings);
        EXPECT_EQ(channels.total(), c.total);
    }
}

TEST(Rings, of_a_part_of_the_hybrid_cube_mesh_use_what_links_it_has) {
    // Measured all-reduce plateaus on such a node (published): 22.6 GB/s on one link, 45.1 on a triangle.
    EXPECT_EQ(rings_of("dgx-1v-16gb", {0, 1}).total(), 25_GBps);         // NV1: one ring, the link carries both ways
    EXPECT_EQ(rings_of("dgx-1v-16gb", {0, 3}).total(), 50_GBps);         // NV2
    EXPECT_EQ(rings_of("dgx-1v-16gb", {0, 1, 2}).total(), 50_GBps);      // one cycle, both ways
    EXPECT_EQ(rings_of("dgx-1v-16gb", {0, 1, 2, 3}).total(), 100_GBps);  // two cycles of the 4 links of gpu0
    EXPECT_EQ(rings_of("dgx-1v-16gb", {0, 3, 4, 7}).rings.front().size(), 4U);
}

TEST(Rings, keep_the_names_of_the_gpus_they_were_asked_for) {
    for (const auto& ring : rings_of("dgx-1v-16gb", {4, 5, 6, 7}).rings)
        EXPECT_THAT(ring, ::testing::UnorderedElementsAre(4, 5, 6, 7));
}

TEST(Rings, fall_back_to_one_over_pcie_where_nvlink_joins_no_cycle) {
    const RingChannels pair = rings_of("dgx-1v-16gb", {0, 5});
    EXPECT_EQ(pair.rings.size(), 1U);
    EXPECT_EQ(pair.per_channel, 15.75_GBps);
    EXPECT_EQ(pair.proximity, Proximity::sys);
    EXPECT_EQ(rings_of("dgx-1v-16gb", {0, 1, 2, 3, 4}).rings.size(), 1U);  // gpu4 knows gpu0 only
}

TEST(Rings, over_pcie_share_the_narrowest_link) {
    // Four cards send through host memory over one switch uplink of 31.5 GB/s: 31.5 / 4 each.
    const RingChannels all = rings_of("8x-rtx3090-pcie", first_gpus(8));
    EXPECT_EQ(all.rings.size(), 1U);
    EXPECT_DOUBLE_EQ(all.per_channel.value, 31.5e9 / 4);
    EXPECT_EQ(all.proximity, Proximity::sys);
    EXPECT_DOUBLE_EQ(rings_of("8x-rtx3090-pcie", {0, 1}).per_channel.value, 31.5e9 / 2);
    // With peer access only one hop of the ring leaves each switch.
    Machine m = shipped_machine("8x-rtx3090-pcie");
    m.node.peer_access = PeerAccess::direct;
    EXPECT_DOUBLE_EQ(find_rings(m.node, first_gpus(8)).per_channel.value, 31.5e9);
}

TEST(Rings, over_pcie_visit_near_gpus_one_after_the_other) {
    EXPECT_THAT(rings_of("8x-rtx3090-pcie", {0, 4, 1, 5}).rings.front(), ElementsAre(0, 1, 4, 5));
}

TEST(Rings, are_the_same_for_the_same_input) {
    EXPECT_EQ(rings_of("dgx-1v-16gb", first_gpus(8)).rings, rings_of("dgx-1v-16gb", first_gpus(8)).rings);
}

TEST(RingSearch, decomposes_four_links_between_each_two_of_four_gpus_into_twelve_rings) {
    // 12 links at each GPU; NCCL logs of A100x4 with NV4 between each two show 12 channels.
    EXPECT_EQ(find_directed_rings({{0, 4, 4, 4}, {4, 0, 4, 4}, {4, 4, 0, 4}, {4, 4, 4, 0}}).size(), 12U);
}

TEST(RingSearch, finds_nothing_on_a_chain) {
    EXPECT_TRUE(find_directed_rings({{0, 2, 0}, {2, 0, 2}, {0, 2, 0}}).empty());
    EXPECT_TRUE(find_directed_rings({{0, 0}, {0, 0}}).empty());
}

TEST(RingSearch, ends_on_sixteen_gpus_that_have_no_ring) {
    // Two full groups of 8 joined by one GPU: no cycle visits all, and there are 7! paths and more to try.
    LinkCounts links(16, std::vector<int>(16, 0));
    for (std::size_t a = 0; a < 16; ++a)
        for (std::size_t b = 0; b < 16; ++b)
            if (a != b && (a / 8 == b / 8 || a == 0 || b == 0)) links[a][b] = 1;
    EXPECT_TRUE(find_directed_rings(links).empty());
}

}  // namespace
}  // namespace lockstep::machine
