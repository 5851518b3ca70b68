#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/space.hpp"

namespace lockstep::plan {
namespace {

SpaceRequest read(const std::string& text) {
    config::Diagnostics diagnostics;
    SpaceRequest space = read_space(config::parse_text(text, "mine.yaml"), diagnostics);
    diagnostics.throw_if_any();
    return space;
}
std::string failure_of(const std::string& text) {
    try {
        read(text);
    } catch (const InputError& failure) { return failure.what(); }
    return "";
}

model::Model gpt() {
    config::Diagnostics diagnostics;
    model::Model model = model::load_model(config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}),
                                           config::parse_text("{base: gpt3-175b, vocab: 51200}", "test"), diagnostics);
    diagnostics.throw_if_any();
    return model;
}

constexpr machine::Placement eight_nodes{64, 8};

Space space_of(const std::string& lists, const PlanRequest& base = {}) {
    const model::Model model = gpt();
    return make_space(with_defaults(read(lists), model, 64), base, {.global = 1536}, Optimizer::adam, model,
                      eight_nodes);
}

TEST(Space, takes_a_value_or_a_list_for_each_axis) {
    const SpaceRequest space =
        read("{tp: [1, 8], pp: 4, recompute: [none, full], sequence_parallel: true, microbatch: [1, 2]}");
    EXPECT_EQ(space.tp, (std::vector{1, 8}));
    EXPECT_EQ(space.pp, (std::vector{4}));
    EXPECT_EQ(space.recompute, (std::vector{Recompute::none, Recompute::full}));
    EXPECT_EQ(space.sequence_parallel, (std::vector<bool>{true}));
    EXPECT_TRUE(space.zero.empty());
}

TEST(Space, refuses_unknown_keys_and_values_and_empty_lists) {
    EXPECT_NE(failure_of("{tpp: 2}").find("did you mean 'tp'"), std::string::npos);
    EXPECT_NE(failure_of("{zero: [0, 4]}").find("from 0 to 3"), std::string::npos);
    EXPECT_NE(failure_of("{tp: []}").find("empty list"), std::string::npos);
    EXPECT_NE(failure_of("{tp: [2, 2]}").find("twice"), std::string::npos);
    EXPECT_NE(failure_of("{recompute: ful}").find("did you mean 'full'"), std::string::npos);
    EXPECT_NE(failure_of("{microbatch: 0}").find("out of range"), std::string::npos);
}

TEST(Space, has_the_divisors_of_the_world_by_default) {
    const model::Model model = gpt();
    const SpaceRequest space = with_defaults({}, model, 64);
    EXPECT_EQ(space.tp, (std::vector{1, 2, 4, 8, 16, 32, 64}));
    EXPECT_EQ(space.pp, (std::vector{1, 2, 4, 8, 16, 32, 64}));
    EXPECT_EQ(space.cp, std::vector{1});  // 2048 tokens are too few to split
    EXPECT_EQ(space.ep, std::vector{1});
    EXPECT_EQ(space.microbatch.size(), 8);
}

/// tp 2, 96 blocks on 4 stages: vpp of 1, 2, 3, 4, 6, 8, 12, 24.
TEST(Space, tries_chunks_that_divide_the_blocks_of_a_stage) {
    std::set<int> chunks;
    for (const Candidate& c : space_of("{tp: 2, pp: 4, microbatch: 1, zero: 0, recompute: none}").candidates)
        chunks.insert(c.plan.split.vpp);
    EXPECT_EQ(chunks, (std::set{1, 2, 3, 4, 6, 8, 12, 24}));
}

TEST(Space, counts_no_plan_twice) {
    std::set<std::string> texts;
    const Space space = space_of("{}");
    for (const Candidate& c : space.candidates) EXPECT_TRUE(texts.insert(plan_text(c.request)).second);
    EXPECT_GT(space.candidates.size(), 10'000);
    EXPECT_GT(space.combinations, static_cast<std::int64_t>(space.candidates.size()));
}

TEST(Space, leaves_out_plans_that_do_not_fit_the_batch_or_the_model) {
    for (const Candidate& c : space_of("{}").candidates) {
        EXPECT_EQ(c.plan.global_batch(), 1536);
        EXPECT_EQ(c.plan.mesh.ranks(), 64);
        EXPECT_TRUE(c.plan.split.vpp == 1 || c.plan.accumulation % c.plan.mesh.pp == 0);
        EXPECT_EQ(96 % c.plan.mesh.tp, 0);  // heads
    }
}

TEST(Space, keeps_what_the_plan_says_beyond_the_axes_where_it_means_something) {
    PlanRequest base;
    base.split.async_tp = true;
    base.split.prefetch = 2;
    for (const Candidate& c :
         space_of("{tp: [1, 4], pp: 1, zero: [0, 3], microbatch: 1, recompute: none}", base).candidates) {
        EXPECT_EQ(c.plan.split.async_tp, c.plan.split.sequence_parallel);
        EXPECT_EQ(c.plan.split.prefetch, c.plan.split.zero == 3 ? 2 : 1);
    }
}

TEST(Space, gives_reasons_when_nothing_is_left) {
    const Space space = space_of("{tp: 5}");
    EXPECT_TRUE(space.candidates.empty());
    ASSERT_FALSE(space.refusals.empty());
}

TEST(PlanText, is_what_an_experiment_says) {
    PlanRequest request;
    request.tp = 8;
    request.pp = 4;
    request.split.vpp = 3;
    request.split.schedule = Schedule::interleaved;
    request.split.zero = 1;
    request.split.recompute = Recompute::selective;
    request.microbatch = 2;
    EXPECT_EQ(plan_text(request), "{tp: 8, pp: 4, vpp: 3, zero: 1, microbatch: 2, recompute: selective}");
}

}  // namespace
}  // namespace lockstep::plan
