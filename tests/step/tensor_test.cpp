#include "step/tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "base/error.hpp"
#include "pipeline_graphs.hpp"
#include "step/dependencies.hpp"
#include "step/op_cost.hpp"

namespace lockstep::step::test {
namespace {

using plan::Axis;
using testing::AllOf;
using testing::HasSubstr;

Tensor split(Shape shape, std::vector<Shard> shards) {
    Tensor tensor;
    tensor.name = "t";
    tensor.shape = std::move(shape);
    tensor.shards = std::move(shards);
    return tensor;
}

void expect_runs(const std::vector<IndexRun>& runs, const std::vector<std::array<std::int64_t, 3>>& expected) {
    ASSERT_EQ(runs.size(), expected.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(runs[i].local, expected[i][0]);
        EXPECT_EQ(runs[i].global, expected[i][1]);
        EXPECT_EQ(runs[i].count, expected[i][2]);
    }
}

TEST(Shards, the_first_listed_axis_of_a_dimension_is_the_outermost) {
    const plan::Mesh mesh{.tp = 2, .dp = 3};  // rank = tp + 2 dp
    const Tensor tensor = split({4, 5}, {{0, Axis::dp}, {0, Axis::tp}});
    EXPECT_EQ(global_shape(tensor, mesh), (Shape{24, 5}));
    // tp 1, dp 2: part 2 x 2 + 1 = 5 of 6.
    const auto runs = shard_runs(tensor, mesh, 5);
    ASSERT_EQ(runs.size(), 2U);
    expect_runs(runs[0], {{0, 20, 4}});
    expect_runs(runs[1], {{0, 0, 5}});
}

TEST(Shards, a_zigzag_gives_each_rank_an_early_and_a_late_part) {
    const plan::Mesh mesh{.cp = 4};
    const Tensor tensor = split({6}, {{0, Axis::cp, Shard::Order::zigzag}});  // 8 parts of 3
    expect_runs(shard_runs(tensor, mesh, 0)[0], {{0, 0, 3}, {3, 21, 3}});
    expect_runs(shard_runs(tensor, mesh, 1)[0], {{0, 3, 3}, {3, 18, 3}});
    expect_runs(shard_runs(tensor, mesh, 3)[0], {{0, 9, 6}});
    EXPECT_EQ(global_shape(tensor, mesh), Shape{24});
}

TEST(Shards, a_zigzag_lies_inside_the_outer_split_and_one_rank_has_no_zigzag) {
    const plan::Mesh mesh{.tp = 2, .cp = 2};  // rank = tp + 2 cp
    const Tensor tensor = split({4}, {{0, Axis::tp}, {0, Axis::cp, Shard::Order::zigzag}});
    expect_runs(shard_runs(tensor, mesh, 1)[0], {{0, 8, 2}, {2, 14, 2}});  // tp 1 has 8 to 15; cp 0
    expect_runs(shard_runs(tensor, mesh, 3)[0], {{0, 10, 4}});             // cp 1
    expect_runs(shard_runs(tensor, {.tp = 2}, 1)[0], {{0, 4, 4}});
}

TEST(Shards, of_all_ranks_cover_each_index_once) {
    const plan::Mesh mesh{.tp = 3, .cp = 4, .dp = 2};
    const Tensor tensor = split({2, 6}, {{1, Axis::dp}, {0, Axis::tp}, {1, Axis::cp, Shard::Order::zigzag}});
    const Shape global = global_shape(tensor, mesh);
    std::vector<int> held(static_cast<std::size_t>(global.elements()), 0);
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
        const auto runs = shard_runs(tensor, mesh, rank);
        for (const IndexRun& i : runs[0])
            for (const IndexRun& j : runs[1])
                for (std::int64_t x = 0; x < i.count; ++x)
                    for (std::int64_t y = 0; y < j.count; ++y)
                        ++held[static_cast<std::size_t>((i.global + x) * global[1] + j.global + y)];
    }
    EXPECT_EQ(std::accumulate(held.begin(), held.end(), 0), global.elements());
    EXPECT_EQ(*std::max_element(held.begin(), held.end()), 1);
}

TEST(Shards, a_split_below_a_zigzag_takes_from_its_two_parts) {
    // 16 indices, cp 0 has 0 to 3 and 12 to 15: tp 0 the first, tp 1 the others.
    const plan::Mesh mesh{.tp = 2, .cp = 2};
    const Tensor tensor = split({4}, {{0, Axis::cp, Shard::Order::zigzag}, {0, Axis::tp}});
    expect_runs(shard_runs(tensor, mesh, 0)[0], {{0, 0, 4}});
    expect_runs(shard_runs(tensor, mesh, 1)[0], {{0, 12, 4}});
}

TEST(Shards, refuse_a_zigzag_of_odd_parts) {
    const plan::Mesh mesh{.cp = 2};
    const Tensor odd = split({3}, {{0, Axis::cp, Shard::Order::zigzag}});
    EXPECT_THROW(shard_runs(odd, mesh, 0), LogicError);
    HandWritten made(1);
    made.graph.mesh = mesh;
    made.graph.tensors = {odd};
    EXPECT_THAT(refusal(made.graph), AllOf(HasSubstr("zigzag"), HasSubstr("even extent")));
}

/// A storage of 8 elements and parts of 2 that go round with 4 ranks.
HandWritten with_ring() {
    HandWritten made(1);
    made.graph.mesh.cp = 4;
    const TensorId storage = made.tensor("storage", 8, 1, Lifetime::carried);
    for (int offset : {0, 1, -3, -1}) {
        const TensorId part = made.tensor("part" + std::to_string(offset), 2);
        made.graph.tensors[part.index()].view = View{storage, 0, RingPart{Axis::cp, offset}};
    }
    return made;
}

TEST(RingParts, conflict_when_their_offsets_are_equal_modulo_the_ranks) {
    const HandWritten made = with_ring();
    const Segments segments(made.graph);
    EXPECT_EQ(segments.of(TensorId{0}, 0).count, 4);
    EXPECT_EQ(segments.of(TensorId{1}, 0).first, 0);
    EXPECT_EQ(segments.of(TensorId{2}, 0).first, 1);
    EXPECT_EQ(segments.of(TensorId{3}, 0).first, 1);  // -3 = 1 modulo 4
    EXPECT_EQ(segments.of(TensorId{4}, 0).first, 3);
    EXPECT_EQ(segments.of(TensorId{4}, 0).count, 1);
}

TEST(RingParts, refuse_other_views_beside_them_and_parts_outside_the_storage) {
    HandWritten made = with_ring();
    EXPECT_EQ(refusal(made.graph), "accepted");
    const TensorId whole = made.tensor("whole", 8);
    made.graph.tensors[whole.index()].view = View{TensorId{0}, 0, {}};
    EXPECT_EQ(refusal(made.graph), "accepted");
    const TensorId beside = made.tensor("beside", 2);
    made.graph.tensors[beside.index()].view = View{TensorId{0}, 2, {}};
    EXPECT_THAT(refusal(made.graph), AllOf(HasSubstr("beside"), HasSubstr("no part of the same ring")));
    made.graph.tensors[beside.index()].view = View{TensorId{0}, 0, RingPart{Axis::tp, 0}};
    EXPECT_THAT(refusal(made.graph), AllOf(HasSubstr("beside"), HasSubstr("no part of the same ring")));
    made.graph.tensors.pop_back();
    made.graph.tensors[1].view->first_element = 2;
    EXPECT_THAT(refusal(made.graph), AllOf(HasSubstr("part0"), HasSubstr("outside its storage (elements 2 to 10")));
}

TEST(Attention, ring_steps_of_all_ranks_add_up_to_the_whole) {
    // 4 ranks, 4 steps each, of 1/16 of the scores: 4 b h s^2 d + 7 b h s^2 flops forward.
    Attention whole{.batch = 2, .seq = 64, .heads = 4, .kv_heads = 2, .head_dim = 8};
    Attention step = whole;
    step.part = Attention::Part::ring;
    step.ring_size = 4;
    step.seq = 16;
    for (const Pass pass : {Pass::forward, Pass::backward_data}) {
        whole.pass = step.pass = pass;
        Op a, b;
        a.kind = Compute{whole};
        b.kind = Compute{step};
        EXPECT_DOUBLE_EQ(flops_of(a).value, 16 * flops_of(b).value);
    }
    EXPECT_DOUBLE_EQ(flops_of({.kind = Compute{Attention{.batch = 2, .seq = 64, .heads = 4, .head_dim = 8}}}).value,
                     2.0 * 4 * 64 * 64 * (4 * 8 + 7));
}

TEST(SoftmaxLoss, parts_of_all_columns_add_up_to_the_whole) {
    double parts = 0;
    for (const auto part : {SoftmaxLoss::Part::row_max, SoftmaxLoss::Part::row_sums, SoftmaxLoss::Part::finish})
        parts += 4 * flops_of({.kind = Compute{SoftmaxLoss{.part = part, .rows = 10, .classes = 25}}}).value;
    EXPECT_DOUBLE_EQ(parts, flops_of({.kind = Compute{SoftmaxLoss{.rows = 10, .classes = 100}}}).value);
}

}  // namespace
}  // namespace lockstep::step::test
