#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/plan.hpp"

namespace lockstep::plan {
namespace {

using testing::HasSubstr;

std::string failure_of(const PlanRequest& request, const BatchRequest& batch, int ranks) {
    try {
        make_plan(request, batch, Optimizer::adam, {ranks, ranks});
    } catch (const InputError& failure) { return failure.what(); }
    return "made a plan";
}

TEST(MakePlan, all_ranks_are_data_parallel_without_other_axes) {
    const Plan plan = make_plan({}, {.per_rank = 32}, Optimizer::adam, {8, 8});
    EXPECT_EQ(plan.mesh.dp, 8);
    EXPECT_EQ(plan.mesh.ranks(), 8);
    EXPECT_EQ(plan.micro_batch, 32);
    EXPECT_EQ(plan.global_batch(), 256);
    EXPECT_EQ(plan.optimizer, Optimizer::adam);
}

TEST(MakePlan, dp_is_what_the_other_axes_leave) {
    const Plan plan = make_plan({.tp = 2, .pp = 4}, {.per_rank = 1}, Optimizer::adam, {24, 24});
    EXPECT_EQ(plan.mesh.dp, 3);
    EXPECT_EQ(plan.mesh.ranks(), 24);
}

TEST(MakePlan, a_global_batch_is_spread_over_replicas_and_passes) {
    const Plan plan = make_plan({}, {.global = 96, .accumulation = 3}, Optimizer::adam, {4, 4});
    EXPECT_EQ(plan.micro_batch, 8);  // 96 / (4 x 3)
    EXPECT_EQ(plan.global_batch(), 96);
}

TEST(MakePlan, a_batch_per_rank_is_split_over_the_passes) {
    const Plan plan = make_plan({}, {.per_rank = 12, .accumulation = 3}, Optimizer::adam, {2, 2});
    EXPECT_EQ(plan.micro_batch, 4);
    EXPECT_EQ(plan.global_batch(), 24);
}

TEST(MakePlan, buckets_and_overlap_are_carried_over) {
    const Plan plan = make_plan({.bucket = 4_MiB, .first_bucket = 2_MiB, .overlap = false}, {.per_rank = 1},
                                Optimizer::sgd_momentum, {1, 1});
    EXPECT_EQ(plan.bucket, 4_MiB);
    EXPECT_EQ(plan.first_bucket, 2_MiB);
    EXPECT_FALSE(plan.overlap);
}

TEST(MakePlan, ranks_below_one_are_refused) {
    EXPECT_THAT(failure_of({}, {.per_rank = 1}, 0), HasSubstr("use ranks of 1 or more"));
    EXPECT_THAT(failure_of({}, {.per_rank = 1}, -4), HasSubstr("ranks=-4"));
}

TEST(MakePlan, too_many_ranks_are_refused) {
    EXPECT_THAT(failure_of({}, {.per_rank = 1}, max_ranks + 1), HasSubstr("at most 1000000"));
    EXPECT_EQ(make_plan({}, {.per_rank = 1}, Optimizer::adam, {max_ranks, max_ranks}).mesh.dp, max_ranks);
}

TEST(MakePlan, a_batch_of_nothing_is_refused) {
    EXPECT_THAT(failure_of({}, {}, 1), HasSubstr("no samples"));
    EXPECT_THAT(failure_of({}, {.per_rank = -1}, 1), HasSubstr("no samples"));
    EXPECT_THAT(failure_of({}, {.per_rank = 1, .accumulation = 0}, 1), HasSubstr("accumulation=0"));
}

TEST(MakePlan, two_batches_are_refused) {
    EXPECT_THAT(failure_of({}, {.per_rank = 1, .global = 8}, 1), HasSubstr("give one of them"));
}

TEST(MakePlan, a_global_batch_that_does_not_divide_names_its_neighbours) {
    EXPECT_THAT(failure_of({}, {.global = 100, .accumulation = 2}, 8),
                HasSubstr("global_batch=100 is not divisible by dp=8 x accumulation=2; use 96 or 112"));
}

TEST(MakePlan, a_global_batch_below_one_sample_per_pass_names_the_smallest) {
    EXPECT_THAT(failure_of({}, {.global = 4}, 8), HasSubstr("use 8"));
}

TEST(MakePlan, a_batch_per_rank_that_does_not_divide_names_its_neighbours) {
    EXPECT_THAT(failure_of({}, {.per_rank = 10, .accumulation = 4}, 8), HasSubstr("use 8 or 12"));
}

TEST(MakePlan, ranks_that_do_not_hold_whole_replicas_name_their_neighbours) {
    EXPECT_THAT(failure_of({.tp = 4}, {.per_rank = 1}, 6), HasSubstr("use 4 or 8 ranks"));
}

TEST(MakePlan, a_global_batch_beyond_all_counting_is_refused) {
    EXPECT_THAT(failure_of({}, {.per_rank = max_global_batch}, 2), HasSubstr("use at most 500000000000"));
    EXPECT_THAT(failure_of({}, {.per_rank = INT64_MAX}, 1), HasSubstr("use a smaller one"));
    EXPECT_THAT(failure_of({}, {.global = INT64_MAX}, 1), HasSubstr("use a smaller one"));
    EXPECT_THAT(failure_of({.tp = 100000, .pp = 100000}, {.per_rank = 1}, 8), HasSubstr("smaller ones"));
}

TEST(MakePlan, a_micro_batch_that_agrees_is_accepted) {
    EXPECT_EQ(make_plan({.microbatch = 4}, {.per_rank = 8, .accumulation = 2}, Optimizer::adam, {2, 2}).micro_batch, 4);
}

TEST(MakePlan, a_micro_batch_that_disagrees_is_refused_with_both_ways_out) {
    const std::string failure = failure_of({.microbatch = 4}, {.per_rank = 16, .accumulation = 2}, 2);
    EXPECT_THAT(failure, HasSubstr("use microbatch=8 or accumulation=4"));
    EXPECT_THAT(failure_of({.microbatch = 5}, {.per_rank = 16, .accumulation = 1}, 2), HasSubstr("use microbatch=16"));
}

TEST(MakePlan, a_micro_batch_alone_tells_the_passes) {
    const Plan weak = make_plan({.microbatch = 4}, {.per_rank = 12}, Optimizer::adam, {2, 2});
    EXPECT_EQ(weak.accumulation, 3);
    EXPECT_EQ(weak.micro_batch, 4);
    const Plan strong = make_plan({.pp = 2, .microbatch = 2}, {.global = 64}, Optimizer::adam, {8, 8});
    EXPECT_EQ(strong.accumulation, 8);  // 64 / (4 replicas x 2)
    EXPECT_EQ(strong.global_batch(), 64);
}

TEST(MakePlan, a_micro_batch_that_does_not_divide_names_its_neighbours) {
    EXPECT_THAT(failure_of({.microbatch = 5}, {.per_rank = 16}, 2),
                HasSubstr("batch_per_rank=16 is not divisible by microbatch=5; use 15 or 20, or microbatch of 4 or 8"));
    EXPECT_THAT(failure_of({.microbatch = 4}, {.global = 100}, 8),
                HasSubstr("global_batch=100 is not divisible by dp=8 x microbatch=4; use 96 or 128"));
    EXPECT_THAT(failure_of({.microbatch = 1}, {.per_rank = 2'000'000}, 1), HasSubstr("use 2 or more"));
}

TEST(MakePlan, expert_ranks_and_copies_take_samples_of_their_own) {
    const Plan plan = make_plan({.tp = 2, .ep = 2, .replica = 3}, {.per_rank = 5}, Optimizer::adam, {24, 8});
    EXPECT_EQ(plan.mesh.dp, 2);
    EXPECT_EQ(plan.mesh.replica, 3);
    EXPECT_EQ(plan.mesh.ranks(), 24);
    EXPECT_EQ(plan.global_batch(), 5 * 2 * 3 * 2);
    EXPECT_THAT(failure_of({.ep = 2, .replica = 2}, {.global = 12}, 8),
                HasSubstr("dp=2 x replica=2 x ep=2 x accumulation=1; use 8 or 16"));
}

TEST(MakePlan, copies_that_do_not_divide_the_data_parallel_ranks_name_those_that_do) {
    EXPECT_THAT(failure_of({.tp = 2, .replica = 4}, {.per_rank = 1}, 12),
                HasSubstr("replica=4 doesn't divide the 6 ranks that tp pp cp ep leave of 12; use 1, 2, 3 or 6"));
}

Plan within_nodes(const PlanRequest& request, const machine::Placement& placement) {
    PlanRequest asked = request;
    asked.shard_within_node = true;
    return make_plan(asked, {.per_rank = 1}, Optimizer::adam, placement);
}

TEST(MakePlan, shards_within_a_node_are_copied_by_node) {
    EXPECT_EQ(within_nodes({}, {32, 8}).mesh.replica, 4);
    EXPECT_EQ(within_nodes({}, {32, 8}).mesh.dp, 8);
    EXPECT_EQ(within_nodes({.tp = 2}, {32, 8}).mesh.dp, 4);
    EXPECT_EQ(within_nodes({.pp = 2}, {32, 8}).mesh.replica, 2);  // a stage is 16 ranks: two nodes
    EXPECT_EQ(within_nodes({.pp = 4}, {8, 8}).mesh.replica, 1);
    EXPECT_EQ(within_nodes({}, {4, 8}).mesh.replica, 1);
    // All ranks of a shard group are on one node.
    const Plan plan = within_nodes({.tp = 2, .pp = 2}, {64, 8});
    const machine::Placement placement{64, 8};
    for (int rank = 0; rank < 64; ++rank)
        for (const int other : plan.mesh.group(rank, {Axis::dp}))
            EXPECT_EQ(placement.node_of(other), placement.node_of(rank));
}

std::string within_nodes_failure(const PlanRequest& request, const machine::Placement& placement) {
    try {
        within_nodes(request, placement);
    } catch (const InputError& failure) { return failure.what(); }
    return "made a plan";
}

TEST(MakePlan, shards_within_a_node_want_whole_nodes) {
    EXPECT_THAT(within_nodes_failure({}, {12, 8}),
                HasSubstr("a pipeline stage has 12 ranks, and a node 8); use a world of 8 or 16 ranks"));
    EXPECT_THAT(within_nodes_failure({.tp = 16}, {32, 8}),
                HasSubstr("tp cp ep = 16 ranks, and a node has 8); use a product of 1, 2, 4 or 8"));
    EXPECT_THAT(within_nodes_failure({.replica = 2}, {16, 8}), HasSubstr("give one of them"));
}

TEST(MakePlan, the_split_is_carried_over) {
    PlanRequest request;
    request.split.zero = 3;
    request.split.recompute = Recompute::full;
    const Plan plan = make_plan(request, {.per_rank = 1}, Optimizer::adam, {2, 2});
    EXPECT_EQ(plan.split.zero, 3);
    EXPECT_EQ(plan.split.recompute, Recompute::full);
}

}  // namespace
}  // namespace lockstep::plan
