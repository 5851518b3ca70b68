#include "step/stays.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline_graphs.hpp"
#include "step/life_finder.hpp"
#include "step/storage.hpp"

namespace lockstep::step::test {
namespace {

constexpr std::int64_t unit = 4 * 1024;  // bytes of each tensor

/// Ops: w = f(w), x = f(w), y = f(x), z = f(y), x = f(z), w = f(x). Of x, y and z never all three live, but each two at
/// some time.
struct Ring : HandWritten {
    TensorId w, x, y, z;
    Ring() : HandWritten(1) {
        w = tensor("w", 1024, 1, Lifetime::carried);
        x = tensor("x", 1024);
        y = tensor("y", 1024);
        z = tensor("z", 1024);
        const auto relu = [&](TensorId in, TensorId out) {
            return elementwise("op", Elementwise::Kind::relu, {in}, {out, Access::overwrite});
        };
        issue_all({relu(w, w), relu(w, x), relu(x, y), relu(y, z), relu(z, x), relu(x, w)});
    }
    void issue_all(std::vector<Op> ops) { pass = block("pass", std::move(ops)), issue(0, pass); }
    BlockId pass;
};

Stays stays_of(const StepGraph& graph, Freedom freedom) {
    return find_stays(graph, graph.classes[0], LifeFinder(graph).find(graph.classes[0]), freedom);
}

TEST(Stays, each_life_of_a_copy_is_one_or_all_are) {
    const Ring ring;
    EXPECT_EQ(stays_of(ring.graph, Freedom::none).tenants.size(), 3U);
    EXPECT_TRUE(stays_of(ring.graph, Freedom::none).visits.empty());
    const Stays stays = stays_of(ring.graph, Freedom::by_op);
    EXPECT_EQ(stays.tenants.size(), 4U);
    EXPECT_EQ(stays.visits.size(), 8U);  // two for each of x's lives, two for y, two for z
    EXPECT_EQ(live_bytes(stays.tenants), 2 * unit);
}

TEST(Stays, an_op_finds_a_copy_at_one_place_in_all_micro_batches_unless_it_may_move) {
    Ring ring;
    ring.graph.micro_batches = 2;
    ring.issue(0, ring.pass, 1);
    EXPECT_EQ(stays_of(ring.graph, Freedom::by_op).tenants.size(), 4U);
    EXPECT_EQ(stays_of(ring.graph, Freedom::by_instance).tenants.size(), 8U);
    // Of many micro-batches those that are all alike have one place anyway.
    ring.graph.micro_batches = 6;
    for (int m = 2; m < 6; ++m) ring.issue(0, ring.pass, m);
    EXPECT_EQ(stays_of(ring.graph, Freedom::by_instance).tenants.size(), 4U);
}

TEST(Stays, what_is_held_over_the_end_of_a_step_is_one) {
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
    const Stays stays = stays_of(made.graph, Freedom::by_op);
    const auto last = std::find_if(stays.last.begin(), stays.last.end(),
                                   [&](const Stays::Last& copy) { return copy.storage == out; });
    ASSERT_NE(last, stays.last.end());
    EXPECT_EQ(stays.tenants[last->stay].life.intervals.size(), 2U);
}

TEST(Stays, a_tensor_has_a_place_in_each_of_its_lives_where_one_would_take_more_than_the_peak) {
    // One place each: x, y and z are apart in pairs, 3 units. y lies behind x, z in x's place, and the second x in y's.
    Ring ring;
    const MemoryPlan plan = plan_memory(ring.graph, ring.graph.classes[0]);
    EXPECT_EQ(plan.peak.total.value, 3 * unit);
    EXPECT_EQ(plan.arena_bytes, 3 * unit);
    std::vector<OpInstance> ops;
    for_each_op(ring.graph, ring.graph.classes[0].program, [&](const OpInstance& op) { ops.push_back(op); });
    const auto at = [&](std::size_t op, TensorId id) { return byte_offset(ring.graph, plan, 0, ops[op], id, 0); };
    EXPECT_EQ(at(1, ring.x), at(2, ring.x));
    EXPECT_EQ(at(4, ring.x), at(5, ring.x));
    EXPECT_NE(at(1, ring.x), at(4, ring.x));
    EXPECT_EQ(at(5, ring.x), byte_offset(ring.graph, plan, 0, ring.x, 0));
    EXPECT_EQ(at(0, ring.w), 0);
}

TEST(Stays, an_op_moves_with_the_micro_batch_when_it_finds_an_operand_elsewhere_in_some) {
    Ring ring;
    ring.graph.micro_batches = 2;
    ring.issue(0, ring.pass, 1);
    MemoryPlan plan = plan_memory(ring.graph, ring.graph.classes[0]);
    EXPECT_FALSE(moves_with_micro_batch(ring.graph, plan, {&op_of(ring.graph, "op"), 0, 0, 0}));
    plan.elsewhere = {{0, ring.x, 1, unit}};
    EXPECT_TRUE(moves_with_micro_batch(ring.graph, plan, {&op_of(ring.graph, "op"), 0, 0, 0}));
    EXPECT_FALSE(moves_with_micro_batch(ring.graph, plan, {&op_of(ring.graph, "op"), 1, 0, 0}));
    EXPECT_EQ(plan.distance(0, ring.x, 1), unit);
    EXPECT_EQ(plan.distance(0, ring.x, 0), 0);
}

}  // namespace
}  // namespace lockstep::step::test
