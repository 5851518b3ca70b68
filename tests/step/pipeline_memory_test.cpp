#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline_graphs.hpp"
#include "step/life_finder.hpp"
#include "step/liveness.hpp"

namespace lockstep::step::test {
namespace {

using testing::HasSubstr;

constexpr double unit = 4 * 1024;  // bytes of each tensor of a Pipeline

std::vector<double> peaks(const PipelineOptions& options) {
    std::vector<double> units;
    for (const MemoryPlan& plan : measure_memory(Pipeline(options).graph))
        units.push_back(plan.peak.total.value / unit);
    return units;
}

TEST(PipelineMemory, stage_s_of_1f1b_holds_p_minus_s_micro_batches) {
    // K = 8 ops: K weights, K gradients, K activations of each of the p - s passes in flight; when a backward pass
    // begins also the output just sent, the gradient received and the one written. The last stage sends no output, and
    // has read it when it begins.
    const double k = 8;
    const std::vector<double> found = peaks({.stages = 4, .micro_batches = 8});
    ASSERT_EQ(found.size(), 4U);
    for (int s = 0; s < 3; ++s) EXPECT_DOUBLE_EQ(found[static_cast<std::size_t>(s)], 2 * k + (4 - s) * k + 3) << s;
    EXPECT_DOUBLE_EQ(found[3], 2 * k + k + 2);
    EXPECT_EQ(peaks({.stages = 4, .micro_batches = 16}), found);  // more micro-batches need no more
}

TEST(PipelineMemory, gpipe_holds_all_micro_batches) {
    // No gradients yet when the first backward pass begins, and each takes the place of an activation after. The last
    // stage keeps its output too until its loss is taken.
    const double k = 8;
    for (const int m : {3, 4, 8}) {
        const std::vector<double> found = peaks({.stages = 2, .micro_batches = m, .order = Order::gpipe});
        EXPECT_DOUBLE_EQ(found[0], k + m * k + 3) << m;
        EXPECT_DOUBLE_EQ(found[1], k + m * (k + 1) + 1) << m;
    }
}

TEST(PipelineMemory, the_arena_is_within_2_percent_of_the_peak) {
    for (const Order order : {Order::one_forward_one_backward, Order::gpipe})
        for (const int stages : {2, 4}) {
            const StepGraph graph = Pipeline({.stages = stages, .micro_batches = 6, .ops = 64, .order = order}).graph;
            for (const RankClass& rank_class : graph.classes) {
                const MemoryPlan plan = plan_memory(graph, rank_class);
                EXPECT_GE(static_cast<double>(plan.arena_bytes), plan.peak.total.value) << rank_class.name;
                EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.02 * plan.peak.total.value) << rank_class.name;
            }
        }
}

TEST(PipelineMemory, a_class_counts_only_what_its_program_touches_and_equals_what_it_is_alone) {
    const StepGraph graph = Pipeline({.stages = 3, .micro_batches = 4}).graph;
    const std::vector<MemoryPlan> all = measure_memory(graph);
    for (std::size_t s = 0; s < 3; ++s) {
        EXPECT_DOUBLE_EQ(all[s].peak.parameters.value, 8 * unit);
        const MemoryPlan alone = measure_memory(graph, graph.classes[s]);
        EXPECT_DOUBLE_EQ(all[s].peak.total.value, alone.peak.total.value);
        EXPECT_EQ(all[s].peak_op, alone.peak_op);
    }
}

std::vector<Life::Interval> life(const StepGraph& graph, int stage, TensorId tensor) {
    return lives_of_storages(graph,
                             LifeFinder(graph).find(graph.classes[static_cast<std::size_t>(stage)]))[tensor.index()]
        .intervals;
}
void expect_life(const std::vector<Life::Interval>& found, const std::vector<std::pair<int, int>>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].begin, expected[i].first);
        EXPECT_EQ(found[i].end, expected[i].second);
    }
}

TEST(Lives, what_may_be_received_before_its_step_has_memory_from_when_its_last_reader_is_done) {
    // 0 receive in, 1 use in, 2 to 4 other work. The next step's receive may run after 1.
    HandWritten made(2);
    const TensorId in = made.tensor("in", 8), y = made.tensor("y", 8), z = made.tensor("z", 8);
    made.issue(0, made.messages("receive", {}, {to_stage(1, in, 0)}));
    made.issue(0, made.elementwise("use", Elementwise::Kind::relu, {in}, {y, Access::overwrite}));
    for (int i = 0; i < 3; ++i)
        made.issue(0, made.elementwise("work", Elementwise::Kind::relu, {y}, {z, Access::overwrite}));
    expect_life(life(made.graph, 0, in), {{0, 1}, {2, 4}});
    expect_life(life(made.graph, 0, y), {{1, 4}});
    // After an answer to the work, it may not run before that.
    made.issue(0, made.messages("answer", {to_stage(1, z, 0)}, {}));
    made.issue(0, made.elementwise("more", Elementwise::Kind::relu, {y}, {y, Access::overwrite}));
    // 5 answer waits for 4; 6 more.
    expect_life(life(made.graph, 0, in), {{0, 1}, {5, 6}});
}

TEST(Lives, what_is_still_sent_at_the_end_of_a_step_has_memory_until_the_next_has_waited) {
    // 0 work, 1 receive, 2 use (waits for the receive, and so for the send before it), 3 out, 4 send out.
    HandWritten made(2);
    const TensorId w = made.tensor("w", 8, 1, Lifetime::carried);
    const TensorId in = made.tensor("in", 8), y = made.tensor("y", 8), z = made.tensor("z", 8);
    const TensorId out = made.tensor("out", 8);
    made.issue(0, made.elementwise("work", Elementwise::Kind::relu, {w}, {y, Access::overwrite}));
    made.issue(0, made.messages("receive", {}, {to_stage(1, in, 0)}));
    made.issue(0, made.elementwise("use", Elementwise::Kind::add, {in, y}, {z, Access::overwrite}));
    made.issue(0, made.elementwise("out", Elementwise::Kind::relu, {z}, {out, Access::overwrite}));
    made.issue(0, made.messages("send", {to_stage(1, out, 0)}, {}));
    expect_life(life(made.graph, 0, out), {{0, 2}, {3, 4}});
    expect_life(life(made.graph, 0, y), {{0, 2}});
}

/// Parameters that are split over 4 ranks and gathered before each use (ZeRO 3).
struct Gathered : HandWritten {
    TensorId shard, flat, weight, x, y;
    Gathered() : HandWritten(1) {
        graph.mesh.dp = 4;
        graph.communicators = {{"dp", {plan::Axis::dp}, 4, {}}};
        shard = tensor("shard", 64, 1, Lifetime::carried, Role::parameter);
        flat = tensor("flat", 256, 1, Lifetime::micro_batch, Role::parameter);
        weight = tensor("weight", 128, 1, Lifetime::micro_batch, Role::parameter);
        x = tensor("x", 128, 1, Lifetime::carried);
        y = tensor("y", 128);
        Tensor& part = graph.tensors[shard.index()];
        part.initial.kind = Initial::Kind::part_of;
        part.part_of = flat;
        part.shards = {{0, plan::Axis::dp}};
        graph.tensors[weight.index()].view = View{flat, 0, {}};
        graph.tensors[weight.index()].initial = {Initial::Kind::normal, 0.02, 0, 7};
    }
    void gather() {
        Op op = this->op("gather",
                         Collective{CollectiveKind::all_gather, CommunicatorId{0}, Reduction::sum, 64, DType::fp32},
                         {shard}, {{flat, Access::overwrite}});
        op.stream = StreamId{1};
        issue(0, op);
    }
    void use() { issue(0, elementwise("use", Elementwise::Kind::add, {x, weight}, {y, Access::overwrite})); }
};

TEST(Gathered, parameters_hold_nothing_until_they_are_gathered) {
    Gathered made;
    made.use();
    EXPECT_THAT(refusal(made.graph), HasSubstr("use reads weight before anything wrote it"));
    Gathered gathered;
    gathered.gather();
    gathered.use();
    EXPECT_EQ(refusal(gathered.graph), "accepted");
    gathered.graph.tensors[gathered.shard.index()].shape = {60};
    std::get<Collective>(gathered.graph.blocks[0].ops[0].kind).count = 60;
    EXPECT_THAT(refusal(gathered.graph), HasSubstr("all parts hold 240 elements and that 256"));
}

TEST(Gathered, parameters_take_no_memory_between_two_gathers) {
    // 0 gather, 1 use, 2 and 3 other work, 4 gather (waits for 3 by a StreamWait), 5 use.
    Gathered made;
    made.gather();
    made.use();
    for (int i = 0; i < 2; ++i)
        made.issue(0, made.elementwise("work", Elementwise::Kind::relu, {made.y}, {made.x, Access::overwrite}));
    Op wait = made.op("wait", StreamWait{}, {made.x}, {});
    wait.stream = StreamId{1};
    made.issue(0, wait);
    made.gather();
    made.use();
    // The first gather of a step may run once 6 of the step before is done, and that is its last op.
    expect_life(life(made.graph, 0, made.flat), {{0, 1}, {4, 6}});
}

}  // namespace
}  // namespace lockstep::step::test
