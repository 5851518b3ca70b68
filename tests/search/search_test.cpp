#include <gtest/gtest.h>

#include <atomic>

#include "base/error.hpp"
#include "search/search.hpp"
#include "search/subjects.hpp"
#include "search/workers.hpp"

namespace lockstep::search {
namespace {

/// 16 ranks, all divisors to 8, and memory for some of the plans only.
const char* reduced_space =
    "search: {tp: [1, 2, 4, 8], pp: [1, 2, 4], vpp: [1, 3], zero: [0, 1, 3], microbatch: [1, 2, 4], "
    "recompute: [none, full]}";

SearchOptions options(double gib, int threads = 2) {
    SearchOptions options;
    options.limit = Bytes{gib * 1073741824};
    options.top = 5;
    options.threads = threads;
    return options;
}

std::vector<std::string> plans_of(const std::vector<analysis::RankedPlan>& ranking) {
    std::vector<std::string> plans;
    for (const auto& plan : ranking) plans.push_back(plan.plan);
    return plans;
}

class SearchUnder : public testing::TestWithParam<double> {};

TEST_P(SearchUnder, a_memory_limit_finds_what_exhaustive_simulation_finds) {
    const SmallWorld world(small_gpt(reduced_space));
    const plan::Space space = world.space();
    ASSERT_GT(space.candidates.size(), 200);
    auto exhaustive = options(GetParam());
    exhaustive.is_exhaustive = true;
    const auto all = search(world.subject(), space, exhaustive);
    const auto found = search(world.subject(), space, options(GetParam()));
    EXPECT_EQ(all.counts.simulated, static_cast<std::int64_t>(space.candidates.size()));
    EXPECT_LT(found.counts.simulated, all.counts.simulated / 2);
    EXPECT_EQ(found.ranking.front().plan, all.ranking.front().plan);
    EXPECT_EQ(found.ranking.front().run.step_time.median, all.ranking.front().run.step_time.median);
    EXPECT_LE(found.ranking.front().run.memory.total, exhaustive.limit);
}

INSTANTIATE_TEST_SUITE_P(Limits, SearchUnder, testing::Values(60.0, 12.0, 6.0),
                         [](const auto& of) { return std::to_string(static_cast<int>(of.param)) + "_GiB"; });

TEST(Search, finds_the_same_on_any_number_of_threads) {
    const SmallWorld world(small_gpt(reduced_space));
    const plan::Space space = world.space();
    const auto one = search(world.subject(), space, options(12, 1));
    const auto four = search(world.subject(), space, options(12, 4));
    EXPECT_EQ(plans_of(one.ranking), plans_of(four.ranking));
    EXPECT_EQ(plans_of(one.front), plans_of(four.front));
    EXPECT_EQ(one.counts.estimated, four.counts.estimated);
    EXPECT_EQ(one.counts.above_bound, four.counts.above_bound);
    EXPECT_EQ(one.counts.simulated, four.counts.simulated);
}

TEST(Search, has_a_front_of_which_no_plan_is_slower_and_larger_than_another) {
    const SmallWorld world(small_gpt(reduced_space));
    const auto found = search(world.subject(), world.space(), options(60));
    ASSERT_GE(found.front.size(), 2);
    EXPECT_EQ(found.front.front().plan, found.ranking.front().plan);
    for (std::size_t i = 1; i < found.front.size(); ++i) {
        EXPECT_GE(found.front[i].run.step_time.median, found.front[i - 1].run.step_time.median);
        EXPECT_LT(found.front[i].run.memory.total, found.front[i - 1].run.memory.total);
    }
}

TEST(Search, says_why_each_other_value_of_an_axis_is_slower) {
    const SmallWorld world(
        small_gpt("search: {tp: [1, 8, 16], pp: 1, zero: 0, microbatch: 1, recompute: [none, full]}"));
    const auto found = search(world.subject(), world.space(), options(60));
    bool has_tp = false, has_recompute = false;
    for (const auto& value : found.axes) {
        if (value.axis == "tp" && value.value == "16") {
            has_tp = true;
            EXPECT_EQ(value.reason.kind, analysis::Reason::Kind::communication);
            EXPECT_EQ(value.reason.tp_across_nodes, 16);
        }
        if (value.axis == "recompute" && value.value == "full") {
            has_recompute = true;
            EXPECT_EQ(value.reason.kind, analysis::Reason::Kind::recomputation);
        }
    }
    EXPECT_TRUE(has_tp);
    EXPECT_TRUE(has_recompute);
}

TEST(Search, simulates_every_plan_of_a_model_whose_blocks_differ) {
    const SmallWorld world(
        "model: resnet50\nmachine: {node: dgx-a100-80gb, count: 2, network: ib-hdr-8}\nranks: [16]\n"
        "precision: bf16\nglobal_batch: 1024\nsearch: {tp: 1, pp: 1, zero: [0, 1], microbatch: [32, 64]}\n");
    const auto found = search(world.subject(), world.space(), options(60));
    EXPECT_TRUE(found.is_exhaustive);
    EXPECT_FALSE(found.why_exhaustive.empty());
    EXPECT_EQ(found.counts.simulated, 4);
}

std::string refusal_of(const std::string& text, double gib) {
    const SmallWorld world(text);
    try {
        search(world.subject(), world.space(), options(gib));
    } catch (const InputError& failure) { return failure.what(); }
    return "";
}

TEST(Search, refuses_an_empty_space_with_the_reasons) {
    const std::string why = refusal_of(small_gpt("search: {tp: 3}"), 60);
    EXPECT_NE(why.find("empty search space"), std::string::npos) << why;
    EXPECT_NE(why.find("doesn't divide 16 ranks"), std::string::npos) << why;
}

TEST(Search, refuses_a_limit_that_nothing_fits_with_the_smallest_plan) {
    const std::string why = refusal_of(small_gpt(reduced_space), 0.01);
    EXPECT_NE(why.find("plans fits 10.2 MiB a rank (the smallest, {"), std::string::npos) << why;
}

TEST(Search, keeps_what_it_has_when_it_is_stopped) {
    const SmallWorld world(small_gpt(reduced_space));
    std::atomic<bool> is_stopped{false};
    SearchOptions stopped = options(60);
    stopped.is_stopped = [&] { return is_stopped.load(); };
    stopped.show = [&](const SearchProgress& at) {
        if (at.phase == "simulations" && at.done >= 2) is_stopped = true;
    };
    const auto found = search(world.subject(), world.space(), stopped);
    EXPECT_FALSE(found.is_complete);
    EXPECT_GE(found.ranking.size(), 1);
    EXPECT_LT(found.counts.simulated, 8);
}

TEST(Search, that_is_stopped_before_a_plan_was_simulated_says_so) {
    const SmallWorld world(small_gpt(reduced_space));
    SearchOptions stopped = options(60);
    stopped.is_stopped = [] { return true; };
    EXPECT_THROW(search(world.subject(), world.space(), stopped), IncompleteError);
}

TEST(Workers, call_each_piece_once_and_hand_on_what_is_thrown) {
    std::vector<std::atomic<int>> calls(100);
    const auto never = [] { return false; };
    EXPECT_TRUE(share_out(calls.size(), 4, never, [&](std::size_t i) { ++calls[i]; }));
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_THROW(share_out(10, 2, never, [](std::size_t) { throw InputError("no"); }), InputError);
    EXPECT_FALSE(share_out(
        10, 2, [] { return true; }, [](std::size_t) {}));
}

}  // namespace
}  // namespace lockstep::search
