// Communication ops bound to buffers and run between threads.
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "cpu/communication.hpp"

namespace lockstep::cpu::testing {
namespace {

Operand buffer(std::vector<float>& data, std::size_t first, std::size_t n) {
    Operand o;
    o.data = data.data() + first;
    o.shape = {static_cast<std::int64_t>(n)};
    return o;
}

step::StepGraph graph_of(int ranks) {
    step::StepGraph graph;
    graph.mesh.tp = ranks;
    graph.communicators = {{"tp", {plan::Axis::tp}, ranks, {}}};
    return graph;
}

step::Op collective(step::CollectiveKind kind, std::int64_t count) {
    step::Op op;
    op.name = "tested";
    op.kind = step::Collective{kind, step::CommunicatorId{0}, step::Reduction::sum, count, DType::fp32};
    return op;
}

TEST(Communication, all_gather_fills_the_result_around_a_part_that_is_in_place) {
    const step::StepGraph graph = graph_of(3);
    const step::Op op = collective(step::CollectiveKind::all_gather, 4);
    world::run_thread_world(3, [&](world::World& world) {
        std::vector<float> data(12, -1);
        const std::size_t mine = 4 * static_cast<std::size_t>(world.rank());
        std::iota(data.begin() + mine, data.begin() + mine + 4, static_cast<float>(mine));
        const Operands operands{{buffer(data, mine, 4)}, {{buffer(data, 0, 12)}}};
        const BoundCommunication bound = bind_communication(graph, world.rank(), op, operands);
        OpInFlight flight(bound, &world, {});
        while (!flight.progress({})) {}
        std::vector<float> expected(12);
        std::iota(expected.begin(), expected.end(), 0.0F);
        EXPECT_EQ(data, expected);
    });
}

TEST(Communication, a_scatter_into_what_it_reads_is_refused) {
    std::vector<float> data(8);
    const Operands operands{{buffer(data, 0, 8)}, {{buffer(data, 4, 4)}}};
    const step::Op op = collective(step::CollectiveKind::reduce_scatter, 4);
    EXPECT_THROW(bind_communication(graph_of(2), 0, op, operands), LogicError);
}

TEST(Communication, peers_of_a_communicator_of_some_stages_are_numbered_among_its_members) {
    // First and last of four stages share a table: rank 3 is member 1.
    step::StepGraph graph;
    graph.mesh.pp = 4;
    graph.communicators = {{"embedding", {plan::Axis::pp}, 2, {0, 3}}};
    std::vector<float> data(2);
    step::P2PGroup group;
    group.communicator = step::CommunicatorId{0};
    group.sends = {{{plan::Axis::pp, 3, false}, step::TensorId{0}, 0, 0}};
    step::Op op;
    op.name = "to the last stage";
    op.kind = group;
    const auto bound = bind_communication(graph, 0, op, {{buffer(data, 0, 2)}, {}});
    EXPECT_EQ(std::get<BoundMessages>(bound).sends[0].to, 1);
    group.sends[0].peer.offset = 1;
    op.kind = group;
    EXPECT_THROW(bind_communication(graph, 0, op, {{buffer(data, 0, 2)}, {}}), LogicError);
}

}  // namespace
}  // namespace lockstep::cpu::testing
