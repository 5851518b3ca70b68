// Values of the formulas in the header, worked out by hand.
#include "cost/collective_cost.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "cost/cost_model.hpp"
#include "cost/peer.hpp"
#include "cost/small_machine.hpp"
#include "cost/zero_communication.hpp"

namespace lockstep::cost {
namespace {

using step::CollectiveKind;

std::vector<int> first(int n) {
    std::vector<int> ranks(static_cast<std::size_t>(n));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

machine::Calibration calibration(double link) {
    machine::Calibration c;
    c.link = link;
    c.collective_base = 20_us;
    c.per_hop = 3_us;
    c.network_per_hop = 15_us;
    return c;
}

constexpr double gib = 1073741824;

TEST(CollectiveCost, of_a_ring_all_reduce_of_1_GiB_on_8_A100) {
    const machine::Machine m = a100_machine();
    const Wires w = find_wires(m, m.place(8), first(8));
    EXPECT_EQ(w.channels, 300_GBps);
    const auto time = collective_time(calibration(0.77), w, CollectiveKind::all_reduce, 1_GiB);
    // 20 + 14 x 3 us, then 2 x 7/8 x 2^30 / (300e9 x 0.77) = 8.134 ms: bus bandwidth 231 GB/s, as nccl-tests shows.
    EXPECT_DOUBLE_EQ(time.latency.value, 62e-6);
    EXPECT_DOUBLE_EQ(time.transfer.value, 2 * 7.0 / 8 * gib / (300e9 * 0.77));
    EXPECT_NEAR(time.transfer.value, 8.134e-3, 1e-6);
}

TEST(CollectiveCost, reduce_scatter_and_all_gather_are_half_an_all_reduce) {
    const machine::Machine m = a100_machine();
    const Wires w = find_wires(m, m.place(8), first(8));
    for (CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
        const auto time = collective_time(calibration(0.8), w, kind, 1_GiB);
        EXPECT_DOUBLE_EQ(time.latency.value, 20e-6 + 7 * 3e-6);
        EXPECT_DOUBLE_EQ(time.transfer.value, 7.0 / 8 * gib / 240e9);
    }
}

TEST(CollectiveCost, a_broadcast_is_a_pipeline) {
    const machine::Machine m = a100_machine();
    const Wires w = find_wires(m, m.place(4), first(4));
    const auto time = collective_time(calibration(0.8), w, CollectiveKind::broadcast, 1_GiB);
    EXPECT_DOUBLE_EQ(time.latency.value, 20e-6 + 3 * 3e-6);
    EXPECT_DOUBLE_EQ(time.transfer.value, gib / 240e9);
}

TEST(CollectiveCost, an_all_to_all_through_a_switch_takes_the_port) {
    const machine::Machine m = a100_machine();
    const Wires w = find_wires(m, m.place(8), first(8));
    // Each GPU sends 1/8 GiB to each of 7 others over its 300 GB/s.
    const auto time = collective_time(calibration(0.8), w, CollectiveKind::all_to_all, 1_GiB);
    EXPECT_NEAR(time.transfer.value, 7.0 / 8 * gib / 240e9, 1e-12);
    EXPECT_DOUBLE_EQ(time.latency.value, 23e-6);
}

TEST(CollectiveCost, one_rank_has_nothing_to_do) {
    const machine::Machine m = a100_machine();
    const auto time =
        collective_time(calibration(0.8), find_wires(m, m.place(1), {0}), CollectiveKind::all_reduce, 1_GiB);
    EXPECT_EQ(time.latency.value, 0);
    EXPECT_EQ(time.transfer.value, 0);
}

TEST(CollectiveCost, switches_that_add_up_are_bound_by_the_port) {
    const machine::Machine m = a100_machine();
    const Wires w = find_wires(m, m.place(8), first(8));
    // link 1.3: 1.75 S / 390 GB/s is above S / 300 GB/s; link 2 would be below it and is held there.
    EXPECT_DOUBLE_EQ(collective_time(calibration(1.3), w, CollectiveKind::all_reduce, 1_GiB).transfer.value,
                     1.75 * gib / 390e9);
    EXPECT_DOUBLE_EQ(collective_time(calibration(2), w, CollectiveKind::all_reduce, 1_GiB).transfer.value, gib / 300e9);
    EXPECT_DOUBLE_EQ(collective_time(calibration(2), w, CollectiveKind::all_gather, 1_GiB).transfer.value,
                     7.0 / 8 * gib / 300e9);
}

TEST(CollectiveCost, between_nodes_the_NICs_are_the_bottleneck_of_a_large_ring) {
    const machine::Machine m = a100_machine(2);
    const Wires w = find_wires(m, m.place(16), first(16));
    EXPECT_EQ(w.nodes, 2);
    EXPECT_EQ(w.local_ranks, 8);
    EXPECT_EQ(w.network, 200_GBps);
    const auto time = collective_time(calibration(0.8), w, CollectiveKind::all_reduce, 1_GiB);
    // 30 steps, 2 of them between nodes at 15 + 2 us; 1.875 S / min(240, 200 x 0.92 = 184 GB/s)
    EXPECT_DOUBLE_EQ(time.latency.value, 20e-6 + 28 * 3e-6 + 2 * 17e-6);
    EXPECT_DOUBLE_EQ(time.transfer.value, 1.875 * gib / 184e9);
}

TEST(CollectiveCost, between_nodes_a_tree_is_taken_where_latency_counts) {
    const machine::Machine m = a100_machine(2);
    const Wires w = find_wires(m, m.place(16), first(16));
    const auto time = collective_time(calibration(0.8), w, CollectiveKind::all_reduce, 1_MiB);
    // Ring: 138 us + 10.7 us. Tree: 20 + 2 (7 x 3 + 1 x 17) = 96 us + 2 MiB / 184 GB/s = 11.4 us.
    EXPECT_DOUBLE_EQ(time.latency.value, 96e-6);
    EXPECT_DOUBLE_EQ(time.transfer.value, 2 * 1048576 / 184e9);
}

TEST(CollectiveCost, a_rank_has_the_NICs_nearest_to_it) {
    // One rank per node of 8 GPUs and 8 NICs: one NIC of 25 GB/s.
    const machine::Machine m = a100_machine(2);
    const Wires w = find_wires(m, m.place(16), {3, 11});
    EXPECT_EQ(w.local_ranks, 1);
    EXPECT_EQ(w.network, 25_GBps);
}

TEST(CollectiveCost, a_message_takes_its_route) {
    const machine::Machine near = a100_machine();
    auto time = message_time(near, near.place(8), 0, 5, Bytes{240e6});
    EXPECT_DOUBLE_EQ(time.latency.value, 23e-6);
    EXPECT_DOUBLE_EQ(time.transfer.value, 1e-3);  // 240 MB at 300 x 0.8 GB/s
    const machine::Machine far = a100_machine(2);
    time = message_time(far, far.place(16), 0, 8, Bytes{23e6});
    EXPECT_DOUBLE_EQ(time.latency.value, 37e-6);
    EXPECT_DOUBLE_EQ(time.transfer.value, 1e-3);  // 23 MB at 25 x 0.92 GB/s
}

TEST(CollectiveCost, ranks_on_several_nodes_need_a_network) {
    machine::Machine m = a100_machine(2);
    const machine::Placement placement = m.place(16);
    m.network.reset();
    EXPECT_THROW(find_wires(m, placement, first(16)), InputError);
    m.network = machine::Network{"bare", 25_GBps, 0, 2_us, 1, {}};  // and the node has no NICs
    EXPECT_THROW(find_wires(m, placement, first(16)), InputError);
}

TEST(CollectiveCost, counts_bytes_as_NCCL_does) {
    step::Collective c;
    c.count = 100;
    c.dtype = DType::fp16;
    EXPECT_EQ(buffer_bytes(c, 8).value, 200);
    c.kind = CollectiveKind::reduce_scatter;
    EXPECT_EQ(buffer_bytes(c, 8).value, 1600);
}

// No result beats the wire, whatever the calibration: what a GPU must take in or give out, over all its links, and what
// a node must, over all its NICs. Worked out from the machine's data alone.
TEST(CollectiveCost, never_beats_the_wire) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    for (int trial = 0; trial < 300; ++trial) {
        const int nodes = 1 + static_cast<int>(random() % 6);
        machine::Machine m = a100_machine(nodes);
        const machine::Placement placement = m.place(8 * nodes);
        std::vector<int> ranks;
        for (int r = 0; r < 8 * nodes; ++r)
            if (random() % 2 == 0) ranks.push_back(r);
        if (ranks.size() < 2) continue;
        const double link = std::uniform_real_distribution(0.2, 3.0)(random);
        const double bytes = std::pow(10.0, std::uniform_real_distribution(0.0, 10.0)(random));
        const Wires w = find_wires(m, placement, ranks);
        const double n = static_cast<double>(ranks.size());
        constexpr double port = 300e9, pcie = 32e9, nics = 200e9, rounding = 1 - 1e-9;
        for (CollectiveKind kind :
             {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
              CollectiveKind::broadcast, CollectiveKind::all_to_all}) {
            const auto time = collective_time(calibration(link), w, kind, Bytes{bytes});
            const double taken = time.latency.value + time.transfer.value;
            const bool is_whole = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
            const double into_gpu = is_whole ? bytes : bytes * (n - 1) / n;
            EXPECT_GE(taken, into_gpu / (port + pcie) * rounding);
            for (int node = 0; node < nodes; ++node) {
                const double m_local = static_cast<double>(
                    std::count_if(ranks.begin(), ranks.end(), [&](int r) { return placement.node_of(r) == node; }));
                if (m_local == 0 || m_local == n) continue;
                // What a node lacks comes in over its NICs: the whole sum, the parts of others, or a part for each
                // pair.
                double into_node = is_whole ? bytes : bytes * (n - m_local) / n;
                if (kind == CollectiveKind::all_to_all) into_node *= m_local;
                EXPECT_GE(taken, into_node / nics * rounding);
            }
            EXPECT_GE(time.transfer.value, wire_bound(w, kind, Bytes{bytes}).value * rounding);
        }
    }
}

struct DpGraph {
    step::StepGraph graph;
    step::Op op;
    DpGraph() {
        graph.mesh.dp = 8;
        graph.communicators = {{"dp", {plan::Axis::dp}, 8}};
        graph.tensors.resize(1);
        graph.tensors[0].shape = Shape{60'000'000};  // 240 MB
        op.name = "reduce";
        step::Collective c;
        c.communicator = {0};
        c.count = 60'000'000;
        op.kind = c;
    }
    step::RankClass rank_class{"all", {}, 8, 0};
};

TEST(CostModel, finds_the_communicator_of_an_op) {
    const machine::Machine m = a100_machine();
    const CostModel model(m, m.place(8));
    DpGraph g;
    const auto time = model.communication(g.graph, g.rank_class.representative, {&g.op, 0, 0, 0});
    EXPECT_DOUBLE_EQ(time.transfer.value, 1.75 * 240e6 / (300e9 * m.calibration.link));
    EXPECT_EQ(model.compute_slowdown(), m.calibration.compute_slowdown);
    // Asked again, the wires are remembered.
    EXPECT_EQ(model.communication(g.graph, g.rank_class.representative, {&g.op, 0, 0, 0}).transfer, time.transfer);
}

TEST(CostModel, sends_and_receives_at_the_same_time) {
    const machine::Machine m = a100_machine();
    const CostModel model(m, m.place(8));
    DpGraph g;
    step::P2PGroup group;
    group.communicator = {0};
    group.sends = {{{plan::Axis::dp, 1, true}, {0}, 0}};
    group.receives = {{{plan::Axis::dp, -1, true}, {0}, 0}};
    g.op.kind = group;
    const double one = model.communication(g.graph, g.rank_class.representative, {&g.op, 0, 0, 0}).transfer.value;
    EXPECT_DOUBLE_EQ(one, 240e6 / (300e9 * m.calibration.link));
    group.sends.push_back({{plan::Axis::dp, 2, true}, {0}, 0});
    g.op.kind = group;
    EXPECT_DOUBLE_EQ(model.communication(g.graph, g.rank_class.representative, {&g.op, 0, 0, 0}).transfer.value,
                     2 * one);
}

TEST(ZeroCommunication, keeps_compute_and_nothing_else) {
    const machine::Machine m = a100_machine();
    const CostModel model(m, m.place(8));
    const ZeroCommunication ideal(model);
    DpGraph g;
    EXPECT_EQ(ideal.communication(g.graph, g.rank_class.representative, {&g.op, 0, 0, 0}).transfer.value, 0);
    EXPECT_EQ(ideal.compute_slowdown(), 0);
    step::Op kernel;
    kernel.kind = step::Compute{step::Fill{}};
    kernel.bytes = Bytes{1e6};
    EXPECT_EQ(ideal.compute(g.graph, 0, {&kernel, 0, 0, 0}), model.compute(g.graph, 0, {&kernel, 0, 0, 0}));
}

TEST(Peer, is_relative_to_the_mesh) {
    plan::Mesh mesh;
    mesh.tp = 2;
    mesh.pp = 4;
    // rank = tp + 2 pp
    EXPECT_EQ(peer_rank(mesh, 3, {plan::Axis::pp, 1, false}), 5);
    EXPECT_EQ(peer_rank(mesh, 1, {plan::Axis::pp, -1, true}), 7);
    EXPECT_THROW(peer_rank(mesh, 7, {plan::Axis::pp, 1, false}), LogicError);
}

}  // namespace
}  // namespace lockstep::cost
