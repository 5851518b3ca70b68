#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline_graphs.hpp"

namespace lockstep::step::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr auto carried = Lifetime::carried;

TEST(PipelineCheck, accepts_1f1b_and_gpipe_of_two_and_four_stages) {
    for (const Order order : {Order::one_forward_one_backward, Order::gpipe})
        for (const int stages : {1, 2, 4})
            for (const int micro_batches : {1, 2, 4, 7})
                EXPECT_EQ(refusal(Pipeline({.stages = stages, .micro_batches = micro_batches, .order = order}).graph),
                          "accepted")
                    << stages << " stages, " << micro_batches << " micro-batches";
}

TEST(PipelineCheck, refuses_1f1b_whose_sends_and_receives_wait_apart) {
    // Stage 0 sends forward before it receives backward; stage 1 sends backward before it receives forward: both wait
    // for ever where nothing is buffered.
    Pipeline pipeline({.stages = 2, .micro_batches = 4});
    StepGraph& graph = pipeline.graph;
    for (int s = 0; s < 2; ++s)
        for (Block& block : graph.blocks) {
            auto* group = std::get_if<P2PGroup>(&block.ops[0].kind);
            if (!group || group->sends.empty() || group->receives.empty()) continue;
            Op receive = pipeline.messages("receive_apart", {}, group->receives);
            block.ops[0] = pipeline.messages(block.ops[0].name, group->sends, {});
            block.ops.push_back(receive);
        }
    std::int32_t first = 0;
    for (Block& block : graph.blocks) {
        block.first_op = first;
        first += static_cast<std::int32_t>(block.ops.size());
    }
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("would hang"), HasSubstr("s0.send_forward_receive_backward"),
                                      HasSubstr("s1.send_backward_receive_forward")));
}

/// Stages in a ring: each sends to the next and receives from the one before, `rounds` times.
enum class Grouping { together, send_first };
StepGraph ring(int stages, int rounds, Grouping grouping) {
    HandWritten made(stages);
    for (int s = 0; s < stages; ++s) {
        const TensorId out = made.tensor("out" + std::to_string(s), 8, 1, carried);
        const TensorId in = made.tensor("in" + std::to_string(s), 8, 1, carried);
        const Message send = to_stage(1, out, 0, 0, true), receive = to_stage(-1, in, 0, 0, true);
        for (int r = 0; r < rounds; ++r) {
            const std::string name = "s" + std::to_string(s) + ".round" + std::to_string(r);
            if (grouping == Grouping::together) {
                made.issue(s, made.messages(name, {send}, {receive}));
                continue;
            }
            made.issue(s, made.messages(name + ".send", {send}, {}));
            made.issue(s, made.messages(name + ".receive", {}, {receive}));
        }
    }
    return made.graph;
}

TEST(PipelineCheck, a_ring_of_stages_passes_only_with_grouped_messages) {
    for (const int stages : {1, 2, 3, 4}) {
        EXPECT_EQ(refusal(ring(stages, 3, Grouping::together)), "accepted") << stages;
        EXPECT_THAT(refusal(ring(stages, 3, Grouping::send_first)),
                    AllOf(HasSubstr("would hang"), HasSubstr("s0.round0.send (micro-batch 0)")))
            << stages;
    }
    EXPECT_THAT(refusal(ring(3, 1, Grouping::send_first)),
                AllOf(HasSubstr("s1.round0.send"), HasSubstr("s2.round0.send")));
}

TEST(PipelineCheck, a_group_is_done_only_when_all_of_it_has_met) {
    // Stage 1 sends what depends on what stage 0 sends in a group that also receives that.
    HandWritten made(2);
    const TensorId x = made.tensor("x", 8, 1, carried), back = made.tensor("back", 8, 1, carried);
    const TensorId y = made.tensor("y", 8), z = made.tensor("z", 8);
    made.issue(0, made.messages("exchange", {to_stage(1, x, 0)}, {to_stage(1, back, 0)}));
    made.issue(1, made.messages("receive", {}, {to_stage(-1, y, 0)}));
    made.issue(1, made.elementwise("use", Elementwise::Kind::relu, {y}, {z, Access::overwrite}));
    made.issue(1, made.messages("answer", {to_stage(-1, z, 0)}, {}));
    EXPECT_EQ(refusal(made.graph), "accepted");  // the parts of the group meet one by one
    made.issue(0, made.elementwise("after", Elementwise::Kind::relu, {back}, {x, Access::overwrite}));
    made.graph.classes[1].program.issues.pop_back();
    EXPECT_THAT(refusal(made.graph), AllOf(HasSubstr("exchange"), HasSubstr("nobody sends it")));
}

TEST(PipelineCheck, refuses_messages_that_differ_in_tag_count_dtype_or_order) {
    auto changed = [](auto&& change) {
        Pipeline pipeline({.stages = 2, .micro_batches = 3});
        auto& group = std::get<P2PGroup>(op_of(pipeline.graph, "s1.receive_forward").kind);
        change(pipeline.graph, group.receives[0]);
        return refusal(pipeline.graph);
    };
    EXPECT_THAT(
        changed([](StepGraph&, Message& m) { m.tag = 9; }),
        AllOf(HasSubstr("s0.send_forward of micro-batch 0"), HasSubstr("tag 9"), HasSubstr("s1.receive_forward")));
    Pipeline count({.stages = 2, .micro_batches = 3});
    for (Tensor& tensor : count.graph.tensors)
        if (tensor.name.starts_with("s0")) tensor.shape = {512};
    for (Block& block : count.graph.blocks)
        for (Op& op : block.ops)
            if (op.name.starts_with("s0"))
                if (auto* compute = std::get_if<Compute>(&op.kind)) {
                    if (auto* e = std::get_if<Elementwise>(compute)) e->count = 512;
                    if (auto* f = std::get_if<Fill>(compute)) f->count = 512;
                }
    EXPECT_THAT(refusal(count.graph), AllOf(HasSubstr("512 fp32"), HasSubstr("1024 fp32"), HasSubstr("unmatched")));

    // Forward and backward messages between the same two ranks, received in the other order.
    HandWritten order(2);
    const TensorId a = order.tensor("a", 8, 1, carried), b = order.tensor("b", 8, 1, carried);
    const TensorId c = order.tensor("c", 8), d = order.tensor("d", 8);
    order.issue(0, order.messages("send_a", {to_stage(1, a, 1)}, {}));
    order.issue(0, order.messages("send_b", {to_stage(1, b, 2)}, {}));
    order.issue(1, order.messages("receive_b", {}, {to_stage(-1, c, 2)}));
    order.issue(1, order.messages("receive_a", {}, {to_stage(-1, d, 1)}));
    EXPECT_THAT(refusal(order.graph), AllOf(HasSubstr("send_a"), HasSubstr("receive_b"), HasSubstr("make order")));
}

TEST(PipelineCheck, refuses_too_few_copies_of_what_waits_for_its_backward_pass) {
    // Stage 0 of 4 has 4 micro-batches in flight: with 3 copies the fourth overwrites the first.
    EXPECT_EQ(refusal(Pipeline({.stages = 4, .micro_batches = 8}).graph), "accepted");
    EXPECT_THAT(refusal(Pipeline({.stages = 4, .micro_batches = 8, .is_short_of_copies = true}).graph),
                AllOf(HasSubstr("s0.backward7 reads s0.a7 in micro-batch 0"),
                      HasSubstr("last written in micro-batch 3"), HasSubstr("in 3 slots"), HasSubstr("more slots")));
}

TEST(PipelineCheck, refuses_messages_of_micro_batches_that_do_not_exist) {
    Pipeline pipeline({.stages = 2, .micro_batches = 3});
    std::get<P2PGroup>(op_of(pipeline.graph, "s1.receive_forward").kind).receives[0].micro_batch_offset = -1;
    EXPECT_THAT(refusal(pipeline.graph),
                AllOf(HasSubstr("s1.receive_forward"), HasSubstr("micro-batches -1 to 0 of 3")));
    std::get<P2PGroup>(op_of(pipeline.graph, "s1.receive_forward").kind).receives[0].micro_batch_offset = 3;
    EXPECT_THAT(refusal(pipeline.graph), HasSubstr("leave those out that don't exist"));
}

TEST(PipelineCheck, an_embedding_group_is_of_the_first_and_last_stage_only) {
    auto with_embeddings = [](const std::vector<int>& stages_that_issue) {
        HandWritten made(4);
        made.graph.communicators.push_back({"embedding", {plan::Axis::pp}, 2, {0, 3}});
        for (int s = 0; s < 4; ++s) {
            const TensorId shared = made.tensor("shared" + std::to_string(s), 8, 1, carried);
            const bool issues =
                std::find(stages_that_issue.begin(), stages_that_issue.end(), s) != stages_that_issue.end();
            made.issue(s, made.elementwise("work", Elementwise::Kind::relu, {shared}, {shared, Access::overwrite}));
            if (issues) made.issue(s, made.all_reduce("embedding.all_reduce", CommunicatorId{1}, shared));
        }
        return made.graph;
    };
    EXPECT_EQ(refusal(with_embeddings({0, 3})), "accepted");
    EXPECT_THAT(refusal(with_embeddings({0})), AllOf(HasSubstr("stage 0 issues embedding.all_reduce"),
                                                     HasSubstr("stage 3 issues nothing to match it")));
    EXPECT_THAT(refusal(with_embeddings({0, 1, 3})), AllOf(HasSubstr("stage 1"), HasSubstr("takes no part")));
    StepGraph graph = with_embeddings({0, 3});
    graph.communicators[1].size = 4;
    EXPECT_THAT(refusal(graph), HasSubstr("embedding has 4 ranks but its axes span 2"));
    graph.communicators[1].stages = {3, 0};
    EXPECT_THAT(refusal(graph), HasSubstr("ascending"));
    const std::vector<int> group{0, 3};
    graph = with_embeddings({0, 3});
    EXPECT_EQ(members(graph.mesh, graph.communicators[1], 3), group);
    EXPECT_TRUE(members(graph.mesh, graph.communicators[1], 1).empty());
}

TEST(PipelineCheck, a_communicator_of_other_axes_too_keeps_those_ranks) {
    const plan::Mesh mesh{.tp = 2, .dp = 2, .pp = 3};  // rank = tp + 2 dp + 4 pp
    const Communicator communicator{"norm", {plan::Axis::tp, plan::Axis::pp}, 4, {0, 2}};
    EXPECT_EQ(members(mesh, communicator, 10), (std::vector<int>{2, 3, 10, 11}));
    EXPECT_TRUE(members(mesh, communicator, 6).empty());
}

TEST(PipelineCheck, a_stream_that_waits_holds_what_comes_after_it) {
    // Stage 0's messages wait for its compute stream, which waits for what stage 1 sends only after it has received.
    auto graph_with = [](bool waits) {
        HandWritten made(2);
        const TensorId x = made.tensor("x", 8, 1, carried), in = made.tensor("in", 8), y = made.tensor("y", 8);
        const TensorId got = made.tensor("got", 8);
        made.graph.streams.push_back({Stream::Lane::communication, CommunicatorId{0}, "pp back"});
        Op receive = made.messages("receive", {}, {to_stage(1, in, 0)});
        receive.stream = StreamId{2};
        made.issue(0, receive);
        made.issue(0, made.elementwise("use", Elementwise::Kind::relu, {in}, {y, Access::overwrite}));
        Op wait = made.op("wait", StreamWait{}, {y}, {});
        wait.stream = StreamId{1};
        if (waits) made.issue(0, wait);
        made.issue(0, made.messages("send", {to_stage(1, x, 0)}, {}));
        made.issue(1, made.messages("take", {}, {to_stage(-1, got, 0)}));
        made.issue(1, made.messages("answer", {to_stage(-1, got, 0)}, {}));
        return made.graph;
    };
    EXPECT_EQ(refusal(graph_with(false)), "accepted");
    EXPECT_THAT(refusal(graph_with(true)), AllOf(HasSubstr("would hang"), HasSubstr("stage 0 in receive")));
}

TEST(PipelineCheck, refuses_a_peer_on_a_communicator_without_its_axis_and_one_that_does_not_wrap_within_a_stage) {
    HandWritten made(1);
    made.graph.mesh.cp = 2;
    const TensorId x = made.tensor("x", 8, 1, carried), y = made.tensor("y", 8);
    Message send{{plan::Axis::cp, 1, true}, x, 0, 0}, receive{{plan::Axis::cp, -1, true}, y, 0, 0};
    made.issue(0, made.messages("ring", {send}, {receive}));
    EXPECT_THAT(refusal(made.graph), AllOf(HasSubstr("ring"), HasSubstr("communicator pp has no such axis")));
    made.graph.communicators[0] = {"cp", {plan::Axis::cp}, 2, {}};
    EXPECT_EQ(refusal(made.graph), "accepted");
    std::get<P2PGroup>(made.graph.blocks[0].ops[0].kind).sends[0].peer.wraps = false;
    EXPECT_THAT(refusal(made.graph), HasSubstr("does not wrap around"));
}

}  // namespace
}  // namespace lockstep::step::test
