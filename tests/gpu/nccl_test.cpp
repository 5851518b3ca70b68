// Communication ops on 2 and 4 ranks as threads, and how they are bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/nccl_cases.hpp"
#include "gpu/nccl_harness.hpp"

namespace lockstep::gpu::testing {

static void PrintTo(const NcclCase& one, std::ostream* out) { *out << one.name; }

namespace {

using ::testing::HasSubstr;
using Kind = step::CollectiveKind;

class NcclCases : public ::testing::TestWithParam<std::tuple<int, NcclCase>> {};

TEST_P(NcclCases, give_what_their_equations_say) {
    const auto& [ranks, one] = GetParam();
    run_ranks(ranks, one.run);
}

INSTANTIATE_TEST_SUITE_P(Nccl, NcclCases,
                         ::testing::Combine(::testing::Values(2, 4), ::testing::ValuesIn(nccl_cases())),
                         [](const auto& of) {
                             return std::get<1>(of.param).name + "_on_" + std::to_string(std::get<0>(of.param));
                         });

template <class Error, class F>
std::string thrown(F&& f) {
    try {
        f();
    } catch (const Error& error) { return error.what(); }
    return "nothing was thrown";
}

step::Collective collective(Kind kind, std::int64_t count, DType dtype = DType::fp32) {
    return {kind, step::CommunicatorId{0}, step::Reduction::sum, count, dtype};
}

TEST(Nccl, an_op_says_who_it_is_how_large_and_over_what) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const Buffer data(DType::fp16, 100);
        const Communication bound(rank.graph, world.rank(),
                                  rank.op(collective(Kind::all_reduce, 100, DType::fp16), "bucket0.all_reduce"),
                                  {{data.operand()}, {{data.operand(), {}}}}, rank.communicator());
        EXPECT_EQ(bound.description(), "bucket0.all_reduce (all_reduce, 200 bytes) over dp (2 ranks)");
    });
}

TEST(Nccl, buffers_of_another_size_or_type_than_the_op_are_refused) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const Buffer data(DType::fp32, 200);
        const auto bind = [&](const step::Collective& op, const Operand& in, const Operand& out) {
            return thrown<LogicError>([&] {
                const Communication bound(rank.graph, world.rank(), rank.op(op), {{in}, {{out, {}}}},
                                          rank.communicator());
            });
        };
        EXPECT_THAT(bind(collective(Kind::all_gather, 50), data.operand(0, 50), data.operand(50, 50)),
                    HasSubstr("reads 200 bytes and writes 400, but its buffers have 200 and 200"));
        EXPECT_THAT(bind(collective(Kind::reduce_scatter, 50), data.operand(0, 50), data.operand(50, 50)),
                    HasSubstr("reads 400 bytes and writes 200"));
        EXPECT_THAT(bind(collective(Kind::all_reduce, 50, DType::int32), data.operand(0, 50), data.operand(0, 50)),
                    HasSubstr("adds int32 but its buffers hold fp32 and fp32"));
    });
}

TEST(Nccl, buffers_that_overlap_where_nccl_cannot_work_in_place_are_refused) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const Buffer data(DType::fp32, 400);
        const auto bind = [&](Kind kind, const Operand& in, const Operand& out) {
            return thrown<LogicError>([&] {
                const Communication bound(rank.graph, world.rank(), rank.op(collective(kind, 100)), {{in}, {{out, {}}}},
                                          rank.communicator());
            });
        };
        const int other = 1 - world.rank();
        const std::string why = "writes into what it reads, where NCCL can't work in place";
        EXPECT_THAT(bind(Kind::all_reduce, data.operand(0, 100), data.operand(50, 100)), HasSubstr(why));
        EXPECT_THAT(bind(Kind::all_gather, data.operand(100 * other, 100), data.operand(0, 200)), HasSubstr(why));
        EXPECT_THAT(bind(Kind::reduce_scatter, data.operand(0, 200), data.operand(100 * other, 100)), HasSubstr(why));
        EXPECT_THAT(bind(Kind::all_to_all, data.operand(0, 200), data.operand(0, 200)), HasSubstr(why));
        EXPECT_EQ(bind(Kind::all_to_all, data.operand(0, 200), data.operand(200, 200)), "nothing was thrown");
    });
}

TEST(Nccl, types_that_nccl_cannot_add_are_refused_and_moved) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const DeviceMemory memory = allocate_device(30, "a test");
        const Operand in = operand_at(memory.get(), 10, DType::fp8),
                      out = operand_at(memory.get() + 10, 20, DType::fp8);
        const auto bind = [&](Kind kind, const Operand& to) {
            const Communication bound(rank.graph, world.rank(), rank.op(collective(kind, 10, DType::fp8)),
                                      {{in}, {{to, {}}}}, rank.communicator());
        };
        EXPECT_THAT(thrown<InputError>([&] { bind(Kind::all_reduce, in); }), HasSubstr("can't add fp8 numbers"));
        EXPECT_NO_THROW(bind(Kind::all_gather, out));
    });
}

TEST(Nccl, a_communicator_of_one_rank_copies_what_is_not_in_place) {
    run_ranks(1, [](world::World& world) {
        const Rank rank(world);
        EXPECT_EQ(rank.communicator().comm(), nullptr);
        const Values values{1, 2, 3};
        for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast}) {
            const Buffer in(DType::fp32, values), out(DType::fp32, 3);
            rank.run(collective(kind, 3), {{in.operand()}, {{out.operand(), {}}}});
            EXPECT_EQ(out.read(), values);
            rank.run(collective(kind, 3), {{in.operand()}, {{in.operand(), {}}}});
            EXPECT_EQ(in.read(), values);
        }
        const Buffer in(DType::fp32, values), out(DType::fp32, 3);
        const step::Message around{{plan::Axis::dp, 1, true}, step::TensorId{0}, 0, 0};
        rank.run(step::P2PGroup{step::CommunicatorId{0}, {around}, {around}}, {{in.operand()}, {{out.operand(), {}}}});
        EXPECT_EQ(out.read(), values);
        rank.communicator().throw_if_failed();
        rank.communicator().abort();
    });
}

TEST(Nccl, a_rank_makes_only_the_communicators_that_it_takes_part_in) {
    run_ranks(4, [](world::World& world) {
        step::StepGraph graph;  // two stages of two replicas; stage 1 alone has "last"
        graph.mesh.dp = graph.mesh.pp = 2;
        graph.communicators = {{"dp", {plan::Axis::dp}, 2, {}}, {"last", {plan::Axis::dp, plan::Axis::pp}, 2, {1}}};
        for (const int c : {0, 1})
            graph.streams.push_back({step::Stream::Lane::communication, step::CommunicatorId{c},
                                     graph.communicators[static_cast<std::size_t>(c)].name});
        const auto communicators = make_communicators(graph, world, Seconds{60});
        EXPECT_EQ(communicators[0]->size(), 2);
        EXPECT_EQ(communicators[0]->member(), world.rank() % 2);
        EXPECT_EQ(communicators[1] != nullptr, world.rank() >= 2);
        EXPECT_TRUE(!communicators[1] || communicators[1]->member() == world.rank() - 2);
    });
}

}  // namespace
}  // namespace lockstep::gpu::testing
