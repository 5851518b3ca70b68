// Schedules worked out by hand; all times in microseconds.
#include "sim/sim_executor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/predict.hpp"
#include "sim/small_graph.hpp"

namespace lockstep::sim {
namespace {

using plan::Axis;

struct Times {
    double ready, start, end;
    bool operator==(const Times&) const = default;
};
void PrintTo(const Times& t, std::ostream* out) { *out << "{" << t.ready << ", " << t.start << ", " << t.end << "}"; }

double us(Nanoseconds t) { return static_cast<double>(t.count) / 1000; }
Times times(const step::Span& s) { return {us(s.ready), us(s.start), us(s.end)}; }

TEST(HostLane, issues_ahead_of_slow_kernels) {
    SmallGraph g;
    g.stage("all");
    for (const char* name : {"a", "b", "c"}) g.kernel(name, 10_us, {}, {}, 1_us);
    const auto record = predict(g.graph, g.durations, 1).front();
    // Issued at 1, 2, 3; each kernel takes 10.
    EXPECT_EQ(times(record.spans[0]), (Times{1, 1, 11}));
    EXPECT_EQ(times(record.spans[1]), (Times{2, 11, 21}));
    EXPECT_EQ(times(record.spans[2]), (Times{3, 21, 31}));
    EXPECT_EQ(us(record.begin), 1);
    EXPECT_EQ(us(record.end), 31);
}

TEST(HostLane, limits_a_chain_of_short_kernels) {
    SmallGraph g;
    g.stage("all");
    for (const char* name : {"a", "b", "c"}) g.kernel(name, 1_us, {}, {}, 5_us);
    const auto record = predict(g.graph, g.durations, 1).front();
    // Issued at 5, 10, 15: the device waits for the host.
    EXPECT_EQ(times(record.spans[0]), (Times{5, 5, 6}));
    EXPECT_EQ(times(record.spans[1]), (Times{10, 10, 11}));
    EXPECT_EQ(times(record.spans[2]), (Times{15, 15, 16}));
}

TEST(HostLane, of_a_slow_host_pays_for_each_op) {
    SmallGraph g;
    g.stage("all");
    for (const char* name : {"a", "b"}) g.kernel(name, 1_us, {}, {}, 5_us);
    const auto record = predict(g.graph, g.durations, 1, {.device = "slow", .host_per_op = 2_us}).front();
    EXPECT_EQ(times(record.spans[1]), (Times{14, 14, 15}));
}

TEST(HostLane, waits_for_each_op_when_launches_block) {
    SmallGraph g;
    g.graph.is_blocking_launch = true;
    g.stage("all");
    for (const char* name : {"a", "b"}) g.kernel(name, 10_us, {}, {}, 5_us);
    const auto record = predict(g.graph, g.durations, 1).front();
    EXPECT_EQ(times(record.spans[0]), (Times{5, 5, 15}));
    EXPECT_EQ(times(record.spans[1]), (Times{20, 20, 30}));
}

TEST(HostLane, runs_ahead_by_no_more_than_its_limit) {
    SmallGraph g;
    g.graph.run_ahead = 2;
    g.stage("all");
    for (const char* name : {"a", "b", "c", "d"}) g.kernel(name, 10_us, {}, {}, 1_us);
    const auto record = predict(g.graph, g.durations, 1).front();
    // a and b are issued at 1 and 2. c's host time begins when a is done (11), d's when b is done (21).
    EXPECT_EQ(times(record.spans[1]), (Times{2, 11, 21}));
    EXPECT_EQ(times(record.spans[2]), (Times{12, 21, 31}));
    EXPECT_EQ(times(record.spans[3]), (Times{22, 31, 41}));
}

TEST(HostLane, stands_in_a_host_sync_until_its_operands_are_written) {
    SmallGraph g;
    const auto flag = g.tensor("flag");
    g.stage("all");
    g.kernel("a", 10_us, {}, {flag}, 1_us);
    g.add("sync", step::HostSync{}, 0, {flag}, {}).host_time = 1_us;
    g.kernel("b", 10_us, {}, {}, 1_us);
    const auto record = predict(g.graph, g.durations, 1).front();
    // The host reaches the sync at 2 and leaves it at 11; b is issued at 12 although it needs nothing.
    EXPECT_EQ(times(record.spans[1]), (Times{2, 2, 11}));
    EXPECT_EQ(times(record.spans[2]), (Times{12, 12, 22}));
}

TEST(Overlap, slows_the_kernels_beside_an_all_reduce) {
    SmallGraph g;
    const auto gradient = g.tensor("gradient"), other = g.tensor("other");
    g.durations.slowdown = 0.25;
    g.stage("all");
    g.kernel("a", 10_us, {}, {gradient});
    g.all_reduce("reduce", {2_us, 6_us}, gradient);
    g.kernel("b", 10_us, {}, {other});
    g.kernel("c", 1_us, {gradient, other}, {});
    const auto record = predict(g.graph, g.durations, 1).front();
    // The all-reduce takes 10 to 18. b works 8 us at 0.75 (6 us of its 10), then 4 us at full speed: 22.
    EXPECT_EQ(times(g.span(record, "reduce")), (Times{10, 10, 18}));
    EXPECT_EQ(times(g.span(record, "b")), (Times{0, 10, 22}));
    EXPECT_EQ(times(g.span(record, "c")), (Times{22, 22, 23}));
}

TEST(Overlap, slows_once_however_many_collectives_run) {
    SmallGraph g;
    const auto x = g.tensor("x"), y = g.tensor("y");
    g.durations.slowdown = 0.5;
    g.stage("all");
    g.all_reduce("first", {0_us, 4_us}, x, 1);
    g.all_reduce("second", {0_us, 8_us}, y, 2);
    g.kernel("a", 10_us, {}, {});
    // Half speed until 8 (4 us done), then 6 us more.
    EXPECT_EQ(us(g.span(predict(g.graph, g.durations, 1).front(), "a").end), 14);
}

TEST(Overlap, collectives_of_one_stream_follow_one_another) {
    SmallGraph g;
    const auto x = g.tensor("x"), y = g.tensor("y");
    g.stage("all");
    g.all_reduce("first", {1_us, 3_us}, x);
    g.all_reduce("second", {1_us, 4_us}, y);
    const auto record = predict(g.graph, g.durations, 1).front();
    EXPECT_EQ(times(record.spans[0]), (Times{0, 0, 4}));
    EXPECT_EQ(times(record.spans[1]), (Times{0, 4, 9}));
}

TEST(Steps, depend_through_what_they_carry_over) {
    SmallGraph g;
    const auto weight = g.tensor("weight", step::Lifetime::carried), gradient = g.tensor("gradient");
    g.stage("all");
    g.kernel("compute", 10_us, {weight}, {gradient});
    g.all_reduce("reduce", {0_us, 20_us}, gradient);
    g.kernel("update", 1_us, {gradient}, {weight});
    const auto records = predict(g.graph, g.durations, 3);
    ASSERT_EQ(records.size(), 3u);
    for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(records[k].step, k);
        EXPECT_EQ(times(records[k].spans[0]), (Times{31.0 * k, 31.0 * k, 31.0 * k + 10}));
        EXPECT_EQ(us(records[k].end), 31.0 * (k + 1));
    }
}

TEST(Steps, overlap_where_nothing_ties_them) {
    SmallGraph g;
    const auto table = g.tensor("table");
    g.stage("all");
    g.kernel("compute", 10_us, {}, {});
    g.all_reduce("gather", {0_us, 25_us}, table);
    const auto records = predict(g.graph, g.durations, 3);
    // Kernels of step 1 begin when those of step 0 end (10), the gather of step 0 ends at 25. Step 2 is enqueued when
    // step 0 is collected, at 25.
    EXPECT_EQ(us(records[1].spans[0].start), 10);
    EXPECT_EQ(us(records[2].spans[0].start), 25);
    EXPECT_EQ(us(records[0].end), 25);
    EXPECT_EQ(us(records[1].end), 50);
    EXPECT_EQ(us(records[2].end), 75);
}

TEST(Steps, an_input_copy_is_not_slowed_and_waits_for_its_buffer) {
    SmallGraph g;
    const auto batch = g.tensor("batch"), x = g.tensor("x");
    g.durations.slowdown = 0.5;
    g.durations.work["load"] = 15_us;
    g.stage("all");
    g.add("load", step::Copy{step::Copy::Kind::input, 16, 1, Seconds{0}}, 3, {}, {batch});
    g.kernel("compute", 10_us, {batch}, {});
    g.all_reduce("reduce", {0_us, 12_us}, x);
    const auto records = predict(g.graph, g.durations, 2);
    // The reduce runs 0 to 12 beside the load only. The second load overwrites what the first kernel reads until 25; by
    // then the second reduce, 12 to 24, has slowed that kernel: 15 + 9 us at half speed + 5.5 us = 29.5.
    EXPECT_EQ(times(g.span(records[0], "load")), (Times{0, 0, 15}));
    EXPECT_EQ(times(g.span(records[0], "compute")), (Times{15, 15, 29.5}));
    EXPECT_EQ(times(g.span(records[1], "load")), (Times{29.5, 29.5, 44.5}));
}

TEST(Collectives, begin_when_the_last_rank_arrives) {
    SmallGraph g({.dp = 4, .pp = 2}, {Axis::pp});
    const auto x = g.tensor("x");
    g.stage("early");
    g.kernel("short", 10_us, {}, {x});
    g.all_reduce("meet0", {0_us, 5_us}, x);
    g.stage("late");
    g.kernel("long", 30_us, {}, {x});
    g.all_reduce("meet1", {0_us, 5_us}, x);
    const auto records = predict(g.graph, g.durations, 1);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(times(g.span(records[0], "meet0")), (Times{10, 10, 35}));
    EXPECT_EQ(times(g.span(records[1], "meet1")), (Times{30, 30, 35}));
    EXPECT_EQ(records[0].multiplicity, 4);
    EXPECT_EQ(records[1].rank, 4);
}

TEST(Messages, leave_when_both_ends_are_there) {
    SmallGraph g({.pp = 2}, {Axis::pp});
    const auto x = g.tensor("x"), y = g.tensor("y");
    g.stage("first");
    g.kernel("forward0", 10_us, {}, {x});
    g.message("send", 3_us, Axis::pp, {{1, x}}, {});
    g.stage("last");
    g.message("receive", 3_us, Axis::pp, {}, {{-1, y}});
    g.kernel("forward1", 5_us, {y}, {});
    const auto records = predict(g.graph, g.durations, 2);
    EXPECT_EQ(times(g.span(records[0], "send")), (Times{10, 10, 13}));
    EXPECT_EQ(times(g.span(records[1], "receive")), (Times{0, 0, 13}));
    EXPECT_EQ(times(g.span(records[1], "forward1")), (Times{13, 13, 18}));
    // Step 1: forward0 overwrites x when the send is done (13 to 23); the message arrives at 26.
    EXPECT_EQ(times(g.span(records[2], "send")), (Times{23, 23, 26}));
    EXPECT_EQ(times(g.span(records[3], "forward1")), (Times{26, 26, 31}));
}

TEST(Messages, of_a_ring_of_alike_ranks_pair_off_with_themselves) {
    SmallGraph g({.cp = 4}, {Axis::cp});
    const auto x = g.tensor("x"), y = g.tensor("y");
    g.stage("all");
    g.kernel("a", 2_us, {}, {x});
    g.message("shift", 7_us, Axis::cp, {{1, x}}, {{-1, y}}, true);
    g.kernel("b", 1_us, {y}, {});
    const auto record = predict(g.graph, g.durations, 1).front();
    EXPECT_EQ(times(g.span(record, "b")), (Times{9, 9, 10}));
    EXPECT_EQ(record.multiplicity, 4);
}

TEST(Messages, exchanged_by_groups_need_no_order) {
    // Each stage sends and receives in one group, as 1F1B does: neither waits for the other's group to finish.
    SmallGraph g({.pp = 2}, {Axis::pp});
    const auto a = g.tensor("a"), b = g.tensor("b");
    g.stage("first");
    g.message("exchange0", 4_us, Axis::pp, {{1, a}}, {{1, b}});
    g.stage("last");
    g.kernel("late", 6_us, {}, {b});
    g.message("exchange1", 4_us, Axis::pp, {{-1, b}}, {{-1, a}});
    const auto records = predict(g.graph, g.durations, 1);
    EXPECT_EQ(times(g.span(records[0], "exchange0")), (Times{0, 0, 10}));
    EXPECT_EQ(times(g.span(records[1], "exchange1")), (Times{6, 6, 10}));
}

TEST(Messages, that_nobody_sends_end_in_an_error_that_names_the_op) {
    SmallGraph g({.pp = 2}, {Axis::pp});
    const auto y = g.tensor("y");
    g.stage("first");
    g.kernel("forward0", 10_us, {}, {});
    g.stage("last");
    g.message("receive", 3_us, Axis::pp, {}, {{-1, y}});
    try {
        predict(g.graph, g.durations, 1);
        FAIL() << "no error";
    } catch (const RuntimeError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("receive waits for its counterparts"));
    }
}

TEST(Stages, of_one_class_are_simulated_each_by_itself) {
    // Stages 1 and 2 share a program: receive, compute, send on. A message takes 1, a kernel 10.
    SmallGraph g({.pp = 3}, {Axis::pp});
    const auto x = g.tensor("x"), y = g.tensor("y");
    g.stage("source");
    g.kernel("k0", 10_us, {}, {x});
    g.message("s0", 1_us, Axis::pp, {{1, x}}, {}, true);
    g.message("r0", 1_us, Axis::pp, {}, {{-1, y}}, true);
    g.stage("relay");
    g.message("r1", 1_us, Axis::pp, {}, {{-1, x}}, true);
    g.kernel("k1", 10_us, {x}, {y});
    g.message("s1", 1_us, Axis::pp, {{1, y}}, {}, true);
    g.graph.class_of_stage.push_back({1});
    const auto records = predict(g.graph, g.durations, 1);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(us(records[0].end), 33);  // 10 + 1 + 10 + 1 + 10 + 1
    EXPECT_EQ(us(g.span(records[1], "k1").start), 11);
    EXPECT_EQ(us(g.span(records[2], "k1").start), 22);
    EXPECT_EQ(records[2].rank, 2);
}

SmallGraph random_graph(unsigned seed) {
    SmallGraph g;
    std::uint64_t state = seed;
    auto below = [&](std::uint64_t n) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (state >> 33) % n;
    };
    std::vector<step::TensorId> tensors;
    for (int i = 0; i < 12; ++i) tensors.push_back(g.tensor(fmt::format("t{}", i)));
    g.durations.slowdown = 0.3;
    g.graph.run_ahead = 5;
    g.stage("all");
    for (int i = 0; i < 60; ++i) {
        const auto a = tensors[below(12)], b = tensors[below(12)];
        const Seconds time{static_cast<double>(below(1000)) * 1e-8};
        if (below(4) == 0)
            g.all_reduce(fmt::format("op{}", i), {1_us, time}, a, 1 + static_cast<std::int32_t>(below(2)));
        else
            g.kernel(fmt::format("op{}", i), time, {a}, {b}, Seconds{static_cast<double>(below(200)) * 1e-8});
    }
    return g;
}

TEST(Simulation, gives_equal_records_for_equal_input) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        const SmallGraph g = random_graph(seed);
        const auto one = predict(g.graph, g.durations, 4), two = predict(g.graph, g.durations, 4);
        ASSERT_EQ(one.size(), two.size());
        for (std::size_t k = 0; k < one.size(); ++k) {
            EXPECT_EQ(one[k].begin, two[k].begin);
            EXPECT_EQ(one[k].end, two[k].end);
            ASSERT_EQ(one[k].spans.size(), two[k].spans.size());
            for (std::size_t i = 0; i < one[k].spans.size(); ++i) {
                EXPECT_EQ(one[k].spans[i].ready, two[k].spans[i].ready);
                EXPECT_EQ(one[k].spans[i].start, two[k].spans[i].start);
                EXPECT_EQ(one[k].spans[i].end, two[k].spans[i].end);
            }
        }
    }
}

TEST(Simulation, keeps_streams_in_order_and_every_dependency) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const SmallGraph g = random_graph(seed);
        std::vector<step::Span> all;  // in issue order over the steps
        for (const auto& record : predict(g.graph, g.durations, 4))
            all.insert(all.end(), record.spans.begin(), record.spans.end());
        auto touches = [](const step::Op& op, step::TensorId id) {
            return std::any_of(op.out.begin(), op.out.end(), [&](const step::Write& w) { return w.tensor == id; });
        };
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_LE(all[i].ready, all[i].start);
            EXPECT_LE(all[i].start, all[i].end);
            const step::Op& later = g.graph.op(all[i].op);
            for (std::size_t j = 0; j < i; ++j) {
                const step::Op& earlier = g.graph.op(all[j].op);
                bool must_wait = later.stream == earlier.stream;
                for (step::TensorId id : later.in) must_wait |= touches(earlier, id);
                for (const step::Write& w : later.out) {
                    must_wait |= touches(earlier, w.tensor);
                    for (step::TensorId id : earlier.in) must_wait |= id == w.tensor;
                }
                if (!must_wait) continue;
                ASSERT_LE(all[j].end, all[i].start) << earlier.name << " before " << later.name;
            }
        }
    }
}

TEST(Simulation, refuses_durations_that_are_none) {
    SmallGraph g;
    g.stage("all");
    g.kernel("a", Seconds{-1e-6}, {}, {});
    EXPECT_THROW(predict(g.graph, g.durations, 1), InputError);
    g.durations.work["a"] = 1_us;
    EXPECT_THROW(predict(g.graph, g.durations, 0), InputError);
    g.durations.slowdown = 1;
    EXPECT_THROW(predict(g.graph, g.durations, 1), InputError);
}

TEST(SimExecutor, keeps_two_steps_in_flight_and_no_more) {
    SmallGraph g;
    g.stage("all");
    g.kernel("a", 1_us, {}, {});
    SimExecutor executor(g.durations, {.device = "a100"});
    EXPECT_THROW(executor.enqueue(0), LogicError);
    executor.prepare(g.graph);
    EXPECT_THROW(executor.collect(), LogicError);
    executor.enqueue(0);
    executor.enqueue(1);
    EXPECT_THROW(executor.enqueue(2), LogicError);
    EXPECT_EQ(executor.collect().front().step, 0);
    EXPECT_THROW(executor.enqueue(3), LogicError);
    executor.enqueue(2);
    EXPECT_EQ(executor.collect().front().step, 1);
    EXPECT_EQ(executor.where(), "step 1, op a");
    EXPECT_EQ(executor.info().backend, "sim");
    EXPECT_EQ(executor.info().device, "a100 (simulated)");
}

TEST(SimExecutor, has_no_values_and_no_wires) {
    SmallGraph g;
    const auto x = g.tensor("x");
    g.stage("all");
    g.kernel("a", 1_us, {}, {x});
    SimExecutor executor(g.durations, {});
    executor.prepare(g.graph);
    EXPECT_THROW(executor.read(x), RuntimeError);
    EXPECT_THROW(executor.check_wire(), RuntimeError);
}

}  // namespace
}  // namespace lockstep::sim
