// Addresses and first values of the tensors of split plans, in a graph of a few ops made by hand.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cpu/communication.hpp"
#include "cpu/tensor_memory.hpp"
#include "step/storage.hpp"

namespace lockstep::cpu::testing {
namespace {

using plan::Axis;
using step::Access;
using step::Initial;
using step::Lifetime;
using step::TensorId;

class SplitMemory : public ::testing::Test {
protected:
    SplitMemory() {
        graph_.streams = {{step::Stream::Lane::compute, {}, "compute"}};
        graph_.blocks = {{"all", step::Phase::forward, {}, 0}};
        graph_.classes = {{"all", {{{step::BlockId{0}, 0, 0}}}, 1, 0}};
        graph_.class_of_stage = {step::RankClassId{0}};
    }
    TensorId add(std::string name, Shape shape, Lifetime lifetime = Lifetime::carried) {
        step::Tensor tensor;
        tensor.name = std::move(name);
        tensor.shape = std::move(shape);
        tensor.lifetime = lifetime;
        graph_.tensors.push_back(std::move(tensor));
        return TensorId{static_cast<std::int32_t>(graph_.tensors.size()) - 1};
    }
    step::Tensor& operator[](TensorId id) { return graph_.tensors[id.index()]; }
    TensorId parameter(const char* name, TensorId flat, std::int64_t first, Shape shape, std::uint64_t stream) {
        const TensorId id = add(name, std::move(shape));
        (*this)[id].view = step::View{flat, first, {}};
        (*this)[id].initial = {Initial::Kind::normal, 2, 0, stream};
        (*this)[id].parameter = model::ParameterId{static_cast<std::int32_t>(stream)};
        return id;
    }
    /// An op that writes them, so that they have memory.
    void write(const std::vector<TensorId>& tensors) {
        step::Op op;
        op.name = "writer";
        op.kind = step::Compute{step::Fill{}};
        op.stream = step::StreamId{0};
        for (const TensorId id : tensors) op.out.push_back({id, Access::overwrite});
        graph_.blocks[0].ops.push_back(op);
    }
    float drawn(std::uint64_t stream, std::int64_t index) const {
        return 2 * random_normal(graph_.seed, stream, static_cast<std::uint64_t>(index));
    }
    std::vector<float> initial(TensorId id, int rank) {
        const TensorMemory memory(graph_, rank);
        memory.initialise();
        return memory.read(id);
    }
    step::StepGraph graph_;
};

TEST_F(SplitMemory, parts_of_a_flat_tensor_hold_its_parameters_and_zeros_where_it_is_padded) {
    // Flat of 12: a [2, 2] at 0, b [3] at 4, padding from 7 on. dp 3: parts of 4. tp 2 has halves of a's columns.
    graph_.mesh.dp = 3;
    graph_.mesh.tp = 2;
    const TensorId flat = add("flat", {12}, Lifetime::step);
    const TensorId a = parameter("a", flat, 0, {2, 2}, 1);
    (*this)[a].shards = {{1, Axis::tp}};
    parameter("b", flat, 4, {3}, 2);
    const TensorId part = add("part", {4});
    (*this)[part].part_of = flat;
    (*this)[part].shards = {{0, Axis::dp}};
    (*this)[part].initial.kind = Initial::Kind::part_of;
    write({flat, part});
    // a is [2, 4] globally; the rank with tp = 1 has columns 2 and 3: indices 2, 3, 6, 7.
    const auto rank = [&](int tp, int dp) { return graph_.mesh.rank({tp, 0, 0, dp, 0, 0}); };
    EXPECT_EQ(initial(part, rank(1, 0)), (std::vector<float>{drawn(1, 2), drawn(1, 3), drawn(1, 6), drawn(1, 7)}));
    EXPECT_EQ(initial(part, rank(0, 0)), (std::vector<float>{drawn(1, 0), drawn(1, 1), drawn(1, 4), drawn(1, 5)}));
    EXPECT_EQ(initial(part, rank(1, 1)), (std::vector<float>{drawn(2, 0), drawn(2, 1), drawn(2, 2), 0}));
    EXPECT_EQ(initial(part, rank(0, 2)), (std::vector<float>{0, 0, 0, 0}));
}

TEST_F(SplitMemory, a_part_that_crosses_from_one_parameter_to_the_next_holds_both) {
    graph_.mesh.dp = 2;
    const TensorId flat = add("flat", {8}, Lifetime::step);
    parameter("a", flat, 0, {3}, 1);
    parameter("b", flat, 3, {5}, 2);
    const TensorId part = add("part", {4});
    (*this)[part].part_of = flat;
    (*this)[part].shards = {{0, Axis::dp}};
    (*this)[part].initial.kind = Initial::Kind::part_of;
    write({flat, part});
    EXPECT_EQ(initial(part, 0), (std::vector<float>{drawn(1, 0), drawn(1, 1), drawn(1, 2), drawn(2, 0)}));
    EXPECT_EQ(initial(part, 1), (std::vector<float>{drawn(2, 1), drawn(2, 2), drawn(2, 3), drawn(2, 4)}));
}

TEST_F(SplitMemory, first_values_are_written_only_where_the_storage_is_carried) {
    const TensorId flat = add("flat", {4}, Lifetime::step);
    const TensorId defined = parameter("a", flat, 0, {4}, 1);
    const TensorId carried = add("carried", {4});
    const TensorId kept = parameter("b", carried, 0, {4}, 2);
    write({flat, carried});
    EXPECT_EQ(initial(defined, 0), std::vector<float>(4, 0));
    EXPECT_EQ(initial(kept, 0)[3], drawn(2, 3));
}

TEST_F(SplitMemory, ring_views_are_the_part_that_many_places_after_this_ranks_own) {
    graph_.mesh.tp = 3;
    const TensorId whole = add("whole", {6});
    (*this)[whole].initial = {Initial::Kind::normal, 2, 0, 4};
    const auto ring = [&](int offset) {
        const TensorId id = add("view", {2});
        (*this)[id].view = step::View{whole, 0, step::RingPart{Axis::tp, offset}};
        return id;
    };
    const TensorId own = ring(0), next = ring(1), before = ring(-1), round = ring(-4);
    write({whole});
    const auto values = [&](int part) { return std::vector<float>{drawn(4, 2 * part), drawn(4, 2 * part + 1)}; };
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(initial(own, rank), values(rank));
        EXPECT_EQ(initial(next, rank), values((rank + 1) % 3));
        EXPECT_EQ(initial(before, rank), values((rank + 2) % 3));
        EXPECT_EQ(initial(round, rank), values((rank + 2) % 3));
    }
}

TEST_F(SplitMemory, messages_use_the_copy_of_the_micro_batch_their_tensor_belongs_to) {
    graph_.mesh.pp = 2;
    graph_.class_of_stage = {step::RankClassId{0}, step::RankClassId{0}};
    graph_.communicators = {{"pp", {Axis::pp}, 2, {}}};
    const TensorId sent = add("sent", {16}), received = add("received", {16});
    (*this)[sent].slots = 2;
    write({sent, received});
    step::P2PGroup group;
    group.communicator = step::CommunicatorId{0};
    group.sends = {{{Axis::pp, 1, true}, sent, 3, -1}, {{Axis::pp, 1, true}, sent, 4, 0}};
    group.receives = {{{Axis::pp, -1, true}, received, 3, 0}};
    step::Op op;
    op.name = "exchange";
    op.kind = group;
    op.in = {sent, sent};
    op.out = {{received, Access::overwrite}};
    const TensorMemory memory(graph_, 1);
    EXPECT_TRUE(step::moves_with_micro_batch(memory.graph(), memory.plan(), {&op, 0, 2, 0}));
    const Operands operands = memory.operands({&op, 0, 2, 0});
    ASSERT_EQ(operands.in.size(), 2);
    EXPECT_EQ(operands.in[0].data, memory.address(sent, 1));
    EXPECT_EQ(operands.in[1].data, memory.address(sent, 0));
    const auto bound = std::get<BoundMessages>(bind_communication(graph_, 1, op, operands));
    EXPECT_EQ(bound.sends[0].data.data(), memory.address(sent, 1));
    EXPECT_EQ(bound.sends[1].tag, 4);
    EXPECT_EQ(bound.sends[1].to, 0) << "the neighbour of the last stage is the first";
    EXPECT_EQ(bound.receives[0].data.data(), memory.address(received, 2));
}

TEST_F(SplitMemory, keys_that_go_round_a_ring_have_the_positions_of_the_rank_they_come_from) {
    graph_.mesh.cp = 4;
    step::Attention attention;
    attention.part = step::Attention::Part::ring;
    attention.ring_size = 4;
    attention.ring_step = 3;
    const TensorId qkv = add("qkv", {4, 1, 1, 3, 2}), kv = add("kv", {4, 1, 1, 2, 2}, Lifetime::step);
    const TensorId context = add("context", {4, 1, 1, 2}), lse = add("lse", {1, 1, 4});
    for (const TensorId id : {qkv, context}) (*this)[id].shards = {{0, Axis::cp, step::Shard::Order::zigzag}};
    step::Op op;
    op.name = "attention.ring3";
    op.kind = step::Compute{attention};
    op.stream = step::StreamId{0};
    op.in = {qkv, kv};
    op.out = {{context, Access::update}, {lse, Access::update}};
    write({qkv, kv, context, lse});
    // Rank 1's keys after 3 steps are those of rank 1 - 3 = -2, which is 2: eighths 2 and 5 of 16 positions.
    const Operands operands = TensorMemory(graph_, 1).operands({&op, 0, 0, 0});
    ASSERT_EQ(operands.in[1].runs[0].size(), 2);
    EXPECT_EQ(operands.in[1].runs[0][0].global, 4);
    EXPECT_EQ(operands.in[1].runs[0][1].global, 10);
    EXPECT_EQ(operands.in[1].global[0], 16);
    EXPECT_EQ(operands.in[0].runs[0][0].global, 2);
    attention.ring_size = 3;
    op.kind = step::Compute{attention};
    EXPECT_THROW(TensorMemory(graph_, 1).operands({&op, 0, 0, 0}), LogicError);
}

}  // namespace
}  // namespace lockstep::cpu::testing
