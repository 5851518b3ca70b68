#include "step/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graphs.hpp"

namespace lockstep::step::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const StepGraph& graph) {
    try {
        check(graph);
    } catch (const InputError& error) { return error.what(); }
    return "accepted";
}

StepGraph good() {
    static const StepGraph graph = build("resnet50", {.accumulation = 2});
    return graph;
}

Op& op_named(StepGraph& graph, const std::string& name) {
    for (Block& block : graph.blocks)
        for (Op& op : block.ops)
            if (op.name == name) return op;
    throw std::runtime_error("no op " + name);
}

/// Two stages that exchange messages and add up a shared vector on two communicators along the pipeline.
struct TwoStages {
    StepGraph graph;
    TensorId x, y;  // what stage 0 sends, what stage 1 makes of it
    TensorId first, second;

    TwoStages() {
        graph.mesh.pp = 2;
        graph.placement = {2, 2};
        graph.communicators = {
            {"embedding", {plan::Axis::pp}, 2}, {"norm", {plan::Axis::pp}, 2}, {"pp", {plan::Axis::pp}, 2}};
        graph.streams = {{Stream::Lane::compute, {}, "compute"},
                         {Stream::Lane::communication, CommunicatorId{0}, "embedding"},
                         {Stream::Lane::communication, CommunicatorId{1}, "norm"},
                         {Stream::Lane::communication, CommunicatorId{2}, "pp"}};
        for (TensorId* id : {&x, &y, &first, &second}) {
            Tensor tensor;
            tensor.name = std::string("t") + std::to_string(graph.tensors.size());
            tensor.shape = {8};
            tensor.initial.kind = Initial::Kind::one;
            tensor.lifetime = Lifetime::carried;
            *id = TensorId{static_cast<std::int32_t>(graph.tensors.size())};
            graph.tensors.push_back(tensor);
        }
        graph.blocks = {{"stage 0", Phase::forward, {}, 0}, {"stage 1", Phase::forward, {}, 0}};
        graph.classes = {{"stage 0", {{{BlockId{0}, 0, 0}}}, 1, 0}, {"stage 1", {{{BlockId{1}, 0, 0}}}, 1, 1}};
        graph.class_of_stage = {RankClassId{0}, RankClassId{1}};
    }
    void number() { graph.blocks[1].first_op = static_cast<std::int32_t>(graph.blocks[0].ops.size()); }
    Op& add(int stage, std::string name, OpKind kind, std::vector<TensorId> in, std::vector<Write> out, int stream) {
        Op op;
        op.name = std::move(name);
        op.kind = std::move(kind);
        op.in = std::move(in);
        op.out = std::move(out);
        op.stream = StreamId{stream};
        return graph.blocks[static_cast<std::size_t>(stage)].ops.emplace_back(std::move(op));
    }
    void all_reduce(int stage, int communicator, TensorId tensor) {
        add(stage, communicator == 0 ? "embedding.all_reduce" : "norm.all_reduce",
            Collective{CollectiveKind::all_reduce, CommunicatorId{communicator}, Reduction::sum, 8, DType::fp32},
            {tensor}, {{tensor, Access::update}}, 1 + communicator);
    }
    void copy(int stage, TensorId from, TensorId to) {
        add(stage, "copy", Copy{Copy::Kind::bucket_in, 8, 1, {}}, {from}, {{to, Access::overwrite}}, 0);
    }
    void send(int stage, TensorId tensor, std::string name) {
        P2PGroup group{CommunicatorId{2}, {{{plan::Axis::pp, stage == 0 ? 1 : -1, false}, tensor, 0}}, {}};
        add(stage, std::move(name), group, {tensor}, {}, 3);
    }
    void receive(int stage, TensorId tensor, std::string name) {
        P2PGroup group{CommunicatorId{2}, {}, {{{plan::Axis::pp, stage == 0 ? 1 : -1, false}, tensor, 0}}};
        add(stage, std::move(name), group, {}, {{tensor, Access::overwrite}}, 3);
    }
};

TEST(Check, accepts_what_the_builder_makes) { EXPECT_EQ(refusal(good()), "accepted"); }

TEST(Check, refuses_a_dangling_id) {
    StepGraph graph = good();
    op_named(graph, "relu.forward").in[0] = TensorId{1 << 20};
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("relu.forward"), HasSubstr("1048576")));
    graph = good();
    op_named(graph, "relu.forward").stream = StreamId{};
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("relu.forward"), HasSubstr("stream")));
}

TEST(Check, refuses_a_view_outside_its_storage) {
    StepGraph graph = good();
    for (Tensor& tensor : graph.tensors)
        if (tensor.name == "bucket0[fc.weight]") ++tensor.view->first_element;
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("bucket0[fc.weight]"), HasSubstr("outside its storage")));
}

TEST(Check, refuses_a_wrong_dtype_shape_or_slot_count) {
    StepGraph graph = good();
    graph.tensors[op_named(graph, "relu.forward").out[0].tensor.index()].dtype = DType::int32;
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("relu.forward"), HasSubstr("int32")));
    graph = good();
    op_named(graph, "fc.forward").in[1] = op_named(graph, "conv1.forward").in[1];
    EXPECT_THAT(refusal(graph),
                AllOf(HasSubstr("fc.forward"), HasSubstr("2048000 elements as B"), HasSubstr("conv1.weight")));
    graph = good();
    op_named(graph, "layer1.0.add.forward").in.pop_back();
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("layer1.0.add.forward"), HasSubstr("1 inputs where 2")));
    graph = good();
    std::get<Collective>(op_named(graph, "bucket1.all_reduce").kind).dtype = DType::bf16;
    EXPECT_THAT(refusal(graph), HasSubstr("bucket1.all_reduce"));
}

TEST(Check, refuses_a_read_before_any_write) {
    StepGraph graph = good();
    Block& forward = graph.blocks[1];
    ASSERT_EQ(forward.ops[0].name, "conv1.forward");
    std::swap(forward.ops[0], forward.ops[1]);
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("bn1.forward reads conv1 before anything wrote it")));
}

TEST(Check, refuses_a_value_of_another_micro_batch) {
    // Backward of micro-batch 0 after forward of micro-batch 1: activations live for one pass.
    StepGraph graph = good();
    auto& issues = graph.classes[0].program.issues;
    for (std::size_t i = 0; i + 1 < issues.size(); ++i)
        if (graph.block(issues[i].block).name == "backward" && issues[i].micro_batch == 0) {
            std::swap(issues[i], issues[i + 1]);
            break;
        }
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("micro-batch 0"), HasSubstr("last written in micro-batch 1")));
}

TEST(Check, refuses_ops_numbered_out_of_order_and_unknown_blocks) {
    StepGraph graph = good();
    graph.blocks.back().first_op += 1;
    EXPECT_THAT(refusal(graph), HasSubstr("optimizer"));
    graph = good();
    graph.classes[0].program.issues[0].block = BlockId{99};
    EXPECT_THAT(refusal(graph), HasSubstr("block 99"));
}

TEST(Check, accepts_two_stages_that_agree) {
    TwoStages two;
    two.copy(0, two.y, two.x);
    two.send(0, two.x, "send_forward");
    two.all_reduce(0, 0, two.first);
    two.all_reduce(0, 1, two.second);
    two.receive(1, two.x, "receive_forward");
    two.all_reduce(1, 0, two.first);
    two.all_reduce(1, 1, two.second);
    two.number();
    EXPECT_EQ(refusal(two.graph), "accepted");
}

TEST(Check, refuses_a_collective_order_swapped_on_one_class) {
    TwoStages two;
    for (const int stage : {0, 1}) {
        two.all_reduce(stage, 0, two.first);
        two.all_reduce(stage, 0, two.second);
    }
    two.number();
    two.graph.blocks[0].ops[1].name = two.graph.blocks[1].ops[1].name = "second.all_reduce";
    EXPECT_EQ(refusal(two.graph), "accepted");
    std::swap(two.graph.blocks[1].ops[0], two.graph.blocks[1].ops[1]);
    EXPECT_THAT(refusal(two.graph),
                AllOf(HasSubstr("embedding.all_reduce"), HasSubstr("second.all_reduce"), HasSubstr("out of order")));
}

TEST(Check, refuses_a_collective_that_one_stage_leaves_out) {
    TwoStages two;
    two.all_reduce(0, 0, two.first);
    two.all_reduce(0, 0, two.second);
    two.all_reduce(1, 0, two.first);
    two.number();
    EXPECT_THAT(refusal(two.graph), AllOf(HasSubstr("embedding.all_reduce"), HasSubstr("nothing to match")));
}

TEST(Check, refuses_a_cycle_across_communicators) {
    // Stage 0 waits on `embedding` before `norm`, stage 1 the other way round, each because of its data.
    TwoStages two;
    two.all_reduce(0, 0, two.first);
    two.copy(0, two.first, two.second);
    two.all_reduce(0, 1, two.second);
    two.all_reduce(1, 1, two.second);
    two.copy(1, two.second, two.first);
    two.all_reduce(1, 0, two.first);
    two.number();
    EXPECT_THAT(refusal(two.graph), AllOf(HasSubstr("would hang"), HasSubstr("embedding.all_reduce"),
                                          HasSubstr("norm.all_reduce"), HasSubstr("cycle")));
}

TEST(Check, the_same_order_without_data_between_hangs_only_when_launches_block) {
    TwoStages two;
    two.all_reduce(0, 0, two.first);
    two.all_reduce(0, 1, two.second);
    two.all_reduce(1, 1, two.second);
    two.all_reduce(1, 0, two.first);
    two.number();
    EXPECT_EQ(refusal(two.graph), "accepted");
    two.graph.is_blocking_launch = true;
    EXPECT_THAT(refusal(two.graph), HasSubstr("would hang"));
}

TEST(Check, refuses_two_sends_that_wait_for_each_other) {
    // Separate blocking sends hang 1F1B; nothing is buffered. One group of both goes through.
    TwoStages two;
    two.send(0, two.x, "send_down");
    two.receive(0, two.y, "receive_up");
    two.send(1, two.y, "send_up");
    two.receive(1, two.x, "receive_down");
    two.number();
    EXPECT_THAT(refusal(two.graph), AllOf(HasSubstr("would hang"), HasSubstr("send_down"), HasSubstr("send_up")));
    TwoStages grouped;
    for (const int stage : {0, 1}) {
        const plan::Axis pp = plan::Axis::pp;
        const int other = stage == 0 ? 1 : -1;
        const TensorId out = stage == 0 ? grouped.x : grouped.y;
        const TensorId in = stage == 0 ? grouped.first : grouped.second;
        grouped.add(stage, "exchange",
                    P2PGroup{CommunicatorId{2}, {{{pp, other, false}, out, 0}}, {{{pp, other, false}, in, 0}}}, {out},
                    {{in, Access::overwrite}}, 3);
    }
    grouped.number();
    EXPECT_EQ(refusal(grouped.graph), "accepted");
}

TEST(Check, refuses_an_unmatched_message) {
    TwoStages two;
    two.send(0, two.x, "send_forward");
    two.copy(1, two.x, two.y);
    two.number();
    EXPECT_THAT(refusal(two.graph), AllOf(HasSubstr("send_forward"), HasSubstr("unmatched message")));
    TwoStages tagged;
    tagged.send(0, tagged.x, "send_forward");
    tagged.receive(1, tagged.x, "receive_forward");
    tagged.number();
    std::get<P2PGroup>(tagged.graph.blocks[1].ops[0].kind).receives[0].tag = 7;
    EXPECT_THAT(refusal(tagged.graph),
                AllOf(HasSubstr("send_forward"), HasSubstr("receive_forward"), HasSubstr("tag 7")));
    TwoStages outside;
    outside.send(0, outside.x, "send_backward");
    std::get<P2PGroup>(outside.graph.blocks[0].ops[0].kind).sends[0].peer.offset = -1;
    outside.copy(1, outside.x, outside.y);
    outside.number();
    EXPECT_THAT(refusal(outside.graph), AllOf(HasSubstr("send_backward"), HasSubstr("no such stage")));
}

TEST(Check, a_ring_within_a_stage_meets_itself) {
    // Ring attention: every rank of the cp axis sends on and receives; all run one program.
    StepGraph graph;
    graph.mesh.cp = 4;
    graph.placement = {4, 4};
    graph.communicators = {{"cp", {plan::Axis::cp}, 4}};
    graph.streams = {{Stream::Lane::communication, CommunicatorId{0}, "cp"}};
    Tensor tensor;
    tensor.shape = {8};
    tensor.initial.kind = Initial::Kind::one;
    tensor.lifetime = Lifetime::carried;
    graph.tensors = {tensor, tensor};
    Op op;
    op.name = "ring";
    op.kind = P2PGroup{CommunicatorId{0},
                       {{{plan::Axis::cp, 1, true}, TensorId{0}, 0}},
                       {{{plan::Axis::cp, -1, true}, TensorId{1}, 0}}};
    op.in = {TensorId{0}};
    op.out = {{TensorId{1}, Access::overwrite}};
    op.stream = StreamId{0};
    graph.blocks = {{"forward", Phase::forward, {op}, 0}};
    graph.classes = {{"all", {{{BlockId{0}, 0, 0}}}, 4, 0}};
    graph.class_of_stage = {RankClassId{0}};
    EXPECT_EQ(refusal(graph), "accepted");
    std::get<P2PGroup>(graph.blocks[0].ops[0].kind).receives[0].peer.offset = 1;
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("ring"), HasSubstr("unmatched message")));
}

}  // namespace
}  // namespace lockstep::step::test
