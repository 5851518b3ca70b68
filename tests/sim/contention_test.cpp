// What runs beside each other shares links: each case states its equation and the share that follows.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "cost/collective_cost.hpp"
#include "cost/cost_model.hpp"
#include "sim/predict.hpp"
#include "sim/small_graph.hpp"
#include "sim/worlds.hpp"

namespace lockstep::sim {
namespace {

constexpr std::int64_t count = 25'000'000;  // 100 MB of fp32

/// Collectives and messages of 100 MB, each on a stream of its own, that all begin at once; times by the cost model.
class TrafficOf {
public:
    TrafficOf(machine::Machine machine, plan::Mesh mesh) : machine_(std::move(machine)) {
        graph_.mesh = mesh;
        graph_.placement = machine_.place(mesh.ranks());
        graph_.streams = {{step::Stream::Lane::compute, {}, "compute"}};
        graph_.blocks.push_back({"all", step::Phase::forward, {}, 0});
        graph_.classes.push_back({"all", {{{{0}, 0, 0}}}, mesh.ranks(), 0});
        graph_.class_of_stage.assign(static_cast<std::size_t>(mesh.pp), step::RankClassId{0});
    }

    void all_reduce(const std::string& name, std::vector<plan::Axis> axes) {
        step::Collective c;
        c.communicator = communicator(name, std::move(axes));
        c.count = count;
        add(name, c);
    }
    /// To the next along an axis, and from the one before: both directions at once.
    void shift(const std::string& name, plan::Axis axis, int by) {
        step::P2PGroup group;
        group.communicator = communicator(name, {axis});
        group.sends = {{{axis, by, true}, tensor(name + ".out"), 0, 0}};
        group.receives = {{{axis, -by, true}, tensor(name + ".in"), 0, 0}};
        add(name, group);
    }

    /// Seconds from begin to end of an op on rank 0, without its latency.
    double transfer(const std::string& name, Fold fold = Fold::alike) {
        const cost::CostModel durations(machine_, graph_.placement);
        const auto records = predict(graph_, durations, 1, {.device = "test", .fold = fold});
        for (const step::Span& span : records.front().spans) {
            const step::Op& op = graph_.op(span.op);
            if (op.name != name) continue;
            const auto alone = durations.communication(graph_, 0, {&op, span.op, 0, 0});
            return (span.end - span.start).seconds().value - alone.latency.value;
        }
        throw std::out_of_range(name);
    }
    const machine::Machine& machine() const { return machine_; }

private:
    step::CommunicatorId communicator(const std::string& name, std::vector<plan::Axis> axes) {
        std::int64_t size = 1;
        for (const plan::Axis axis : axes) size *= graph_.mesh.extent(axis);
        graph_.communicators.push_back({name, std::move(axes), size, {}});
        const step::CommunicatorId id{static_cast<std::int32_t>(graph_.communicators.size()) - 1};
        graph_.streams.push_back({step::Stream::Lane::communication, id, name});
        return id;
    }
    step::TensorId tensor(const std::string& name) {
        step::Tensor t;
        t.name = name;
        t.shape = Shape{count};
        t.lifetime = step::Lifetime::step;
        graph_.tensors.push_back(t);
        return {static_cast<std::int32_t>(graph_.tensors.size()) - 1};
    }
    void add(const std::string& name, step::OpKind kind) {
        step::Op op;
        op.name = name;
        op.kind = std::move(kind);
        op.stream = {static_cast<std::int32_t>(graph_.streams.size()) - 1};
        op.bytes = Bytes{4.0 * count};
        graph_.blocks.back().ops.push_back(op);
    }

    machine::Machine machine_;
    step::StepGraph graph_;
};

constexpr double size = 4.0 * count;

machine::Machine cluster(const std::string& node, int nodes, const std::string& network) {
    return shipped_machine(fmt::format("{{node: {}, count: {}, network: {}}}", node, nodes, network));
}
/// Rate a NIC of `gbit` Gb/s reaches.
double nic(double gbit, const machine::Machine&) { return gbit / 8 * 1e9 * 0.92; }

using plan::Axis;

TEST(Contention, two_collectives_of_one_rank_halve_the_ports_of_its_GPU) {
    // 2 x <= C: each gets C/2.
    TrafficOf one(shipped_machine("dgx-a100-40gb"), {.dp = 8});
    one.all_reduce("a", {Axis::dp});
    TrafficOf two(shipped_machine("dgx-a100-40gb"), {.dp = 8});
    two.all_reduce("a", {Axis::dp});
    two.all_reduce("b", {Axis::dp});
    EXPECT_NEAR(two.transfer("a") / one.transfer("a"), 2, 1e-6);
}

TEST(Contention, communicators_of_neighbours_share_one_NIC) {
    // 8 GPUs a node, 2 NICs of 100 Gb/s: four rings of 2 ranks leave by each. 4 x <= C_nic, x = C_nic / 4.
    TrafficOf t(cluster("dgx-a100-40gb", 2, "ib-edr-2"), {.tp = 8, .dp = 2});
    t.all_reduce("dp", {Axis::dp});
    const double share = nic(100, t.machine()) / 4;
    EXPECT_NEAR(t.transfer("dp"), size / share, 1e-6 * size / share);  // 2(n-1)/n = 1
    EXPECT_NEAR(t.transfer("dp", Fold::none), size / share, 1e-6 * size / share);
}

TEST(Contention, a_NIC_of_its_own_is_not_shared) {
    TrafficOf t(cluster("dgx-a100-40gb", 2, "ib-hdr-8"), {.tp = 8, .dp = 2});
    t.all_reduce("dp", {Axis::dp});
    EXPECT_NEAR(t.transfer("dp"), size / nic(200, t.machine()), 1e-6);
}

TEST(Contention, pipeline_beside_data_parallel_traffic_halves_the_NIC) {
    // Each rank alone on its NIC, a message and a ring at once: x_message + x_ring <= C, equal rates C/2 until both end
    // (both move 100 MB each way).
    TrafficOf t(cluster("dgx-a100-40gb", 4, "ib-hdr-8"), {.tp = 8, .dp = 2, .pp = 2});
    t.all_reduce("dp", {Axis::dp});
    t.shift("pp", Axis::pp, 1);
    // Their latencies differ by 15 us, in which the first has the NIC alone.
    const double share = nic(200, t.machine()) / 2;
    EXPECT_NEAR(t.transfer("dp"), size / share, 20e-6);
    EXPECT_NEAR(t.transfer("pp"), size / share, 20e-6);
}

TEST(Contention, inside_NVLink_and_between_nodes_are_different_links) {
    TrafficOf t(cluster("dgx-a100-40gb", 2, "ib-hdr-8"), {.tp = 8, .dp = 2});
    t.all_reduce("tp", {Axis::tp});
    const double alone = t.transfer("tp");
    t.all_reduce("dp", {Axis::dp});
    EXPECT_NEAR(t.transfer("tp"), alone, 1e-9);
}

TEST(Contention, an_oversubscribed_uplink_is_shared_by_the_NICs_below_it) {
    // 4 x 200 Gb/s, 4 : 1: the node's uplink carries 200 Gb/s. Eight rings of one rank a node: 8 x <= C_up.
    machine::Machine m = cluster("dgx-a100-40gb", 2, "ib-hdr-4");
    m.network->oversubscription = 4;
    TrafficOf t(m, {.tp = 8, .dp = 2});
    t.all_reduce("dp", {Axis::dp});
    const double share = nic(200, m) / 8;
    EXPECT_NEAR(t.transfer("dp"), size / share, 1e-6 * size / share);
}

TEST(Contention, GPUs_that_meet_in_host_memory_share_the_switch_and_the_socket) {
    // Four pairs, each of a card below either switch, exchange 100 MB: every byte climbs from its card's switch to the
    // CPU, crosses the sockets and goes down: 4 x <= C_pcie on the uplink of each switch.
    const machine::Machine m = shipped_machine("8x-rtx3090-pcie");
    TrafficOf t(m, {.dp = 8});
    t.shift("across", Axis::dp, 4);
    const double pcie = m.device.pcie.per_direction.value * std::min(m.calibration.link, 1.0);
    EXPECT_NEAR(t.transfer("across"), 4 * size / pcie, 1e-6 * size / pcie);
    // Without peer access a neighbour below the same switch is reached through the CPU too.
    TrafficOf near(m, {.dp = 8});
    near.shift("near", Axis::dp, 1);
    EXPECT_NEAR(near.transfer("near"), 4 * size / pcie, 1e-6 * size / pcie);
}

/// Bytes that must leave a node with `inside` of a collective's n ranks, whatever the algorithm.
double least_leaving(step::CollectiveKind kind, double bytes, double n, double inside) {
    switch (kind) {
        case step::CollectiveKind::all_reduce: return bytes;
        case step::CollectiveKind::broadcast: return 0;
        case step::CollectiveKind::reduce_scatter: return bytes * (n - inside) / n;
        case step::CollectiveKind::all_gather: return bytes * inside / n;
        case step::CollectiveKind::all_to_all: return bytes * inside * (n - inside) / n;
    }
    return 0;
}

/// What leaves each node in a step, from the graph and where ranks are, over all its NICs at their full rate.
double cut_bound(const World& world) {
    const machine::Placement& placement = world.graph.placement;
    std::vector<double> leaving(static_cast<std::size_t>(placement.nodes()), 0);
    for (int rank = 0; rank < world.graph.mesh.ranks(); ++rank)
        step::for_each_op(world.graph, world.graph.rank_class(rank).program, [&](const step::OpInstance& instance) {
            double& out = leaving[static_cast<std::size_t>(placement.node_of(rank))];
            if (const auto* group = std::get_if<step::P2PGroup>(&instance.op->kind))
                for (const step::Message& m : group->sends) {
                    plan::Coordinates to = world.graph.mesh.coordinates(rank);
                    const int extent = world.graph.mesh.extent(m.peer.axis);
                    to[m.peer.axis] = (to[m.peer.axis] + m.peer.offset + extent) % extent;
                    if (placement.node_of(world.graph.mesh.rank(to)) != placement.node_of(rank))
                        out += world.graph.tensor(m.tensor).bytes().value;
                }
            const auto* c = std::get_if<step::Collective>(&instance.op->kind);
            if (c == nullptr) return;
            const auto ranks = step::members(
                world.graph.mesh, world.graph.communicators[static_cast<std::size_t>(c->communicator.value)], rank);
            const auto here = [&](int r) { return placement.node_of(r) == placement.node_of(rank); };
            const auto inside = static_cast<double>(std::ranges::count_if(ranks, here));
            const auto n = static_cast<double>(ranks.size());
            if (inside < n)  // each member tells its part
                out += least_leaving(c->kind, cost::buffer_bytes(*c, static_cast<int>(n)).value, n, inside) / inside;
        });
    double bound = 0;
    for (int node = 0; node < placement.nodes(); ++node) {
        double rate = 0;
        for (const Bandwidth one : world.machine.nics_of(node)) rate += one.value;
        if (rate > 0) bound = std::max(bound, leaving[static_cast<std::size_t>(node)] / rate);
    }
    return bound;
}

TEST(Contention, no_step_beats_the_cut_between_its_nodes) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    int bound = 0;
    for (int trial = 0; trial < 25; ++trial) {
        const World world = random_world(random);
        if (world.graph.placement.nodes() < 2) continue;
        const cost::CostModel durations(world.machine, world.graph.placement);
        constexpr int steps = 3;
        const auto records = predict(world.graph, durations, steps, {.device = "test"});
        Nanoseconds end;
        for (const step::StepRecord& record : records) end = std::max(end, record.end);
        const double least = steps * cut_bound(world);
        EXPECT_GE(end.seconds().value * (1 + 1e-9), least) << world.text;
        bound += least > 0 ? 1 : 0;
    }
    EXPECT_GT(bound, 0);
}

}  // namespace
}  // namespace lockstep::sim
