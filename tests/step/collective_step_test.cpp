#include "step/collective_step.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graphs.hpp"
#include "step/check.hpp"
#include "step/liveness.hpp"

namespace lockstep::step {
namespace {

constexpr machine::Placement four_ranks{4, 4};

Bytes memory_of(const StepGraph& graph) { return measure_memory(graph).front().peak.total; }

TEST(CollectiveStep, every_kind_makes_a_sound_graph_of_one_op) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                            CollectiveKind::broadcast, CollectiveKind::all_to_all}) {
        const StepGraph graph = build_collective(kind, 4_KiB, DType::fp32, four_ranks);
        EXPECT_NO_THROW(check(graph)) << to_string(kind);
        EXPECT_EQ(graph.op_count(), 1);
        ASSERT_NE(only_collective(graph), nullptr);
        EXPECT_EQ(only_collective(graph)->kind, kind);
        EXPECT_EQ(graph.communicators[0].size, 4);
    }
}

TEST(CollectiveStep, counts_have_nccls_meaning_and_buffers_are_as_large_as_nccl_tests_ones) {
    // 4 KiB of fp32 are 1024 elements; a rank's share of four is 256.
    EXPECT_EQ(only_collective(build_collective(CollectiveKind::all_reduce, 4_KiB, DType::fp32, four_ranks))->count,
              1024);
    const StepGraph scatter = build_collective(CollectiveKind::reduce_scatter, 4_KiB, DType::fp32, four_ranks);
    EXPECT_EQ(only_collective(scatter)->count, 256);
    EXPECT_EQ(scatter.tensors[0].elements(), 1024);
    EXPECT_EQ(scatter.tensors[1].elements(), 256);
    const StepGraph gather = build_collective(CollectiveKind::all_gather, 4_KiB, DType::bf16, four_ranks);
    EXPECT_EQ(only_collective(gather)->count, 512);
    EXPECT_EQ(gather.tensors[1].elements(), 2048);
    const StepGraph all_to_all = build_collective(CollectiveKind::all_to_all, 4_KiB, DType::fp32, four_ranks);
    EXPECT_EQ(only_collective(all_to_all)->count, 256);
    EXPECT_EQ(all_to_all.tensors[0].elements(), 1024);
}

TEST(CollectiveStep, a_rank_needs_one_buffer_in_place_and_two_otherwise) {
    EXPECT_EQ(memory_of(build_collective(CollectiveKind::all_reduce, 4_KiB, DType::fp32, four_ranks)), 4_KiB);
    EXPECT_EQ(memory_of(build_collective(CollectiveKind::all_gather, 4_KiB, DType::fp32, four_ranks)), 5_KiB);
}

TEST(CollectiveStep, bytes_that_dont_divide_are_cut_down) {
    // 1003 elements over four ranks: 250 each.
    const StepGraph graph = build_collective(CollectiveKind::all_gather, Bytes{4014}, DType::fp32, four_ranks);
    EXPECT_EQ(only_collective(graph)->count, 250);
}

TEST(CollectiveStep, one_rank_and_less_than_an_element_each_are_refused) {
    EXPECT_THROW(build_collective(CollectiveKind::all_reduce, 4_KiB, DType::fp32, {1, 1}), InputError);
    EXPECT_THROW(build_collective(CollectiveKind::all_gather, 12_B, DType::fp32, four_ranks), InputError);
}

TEST(CollectiveStep, a_training_step_is_no_collective) {
    EXPECT_EQ(only_collective(test::build("gpt-small")), nullptr);
}

}  // namespace
}  // namespace lockstep::step
