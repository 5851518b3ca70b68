#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan.hpp"

namespace lockstep::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Reading {
    PlanRequest request;
    std::vector<std::string> errors;
};

Reading read(const std::string& text, const Framework& framework = {}) {
    config::Diagnostics diagnostics;
    Reading reading;
    reading.request =
        read_plan(text.empty() ? config::Node{} : config::parse_text(text, "plan.yaml"), framework, diagnostics);
    reading.errors = diagnostics.errors();
    return reading;
}

TEST(ReadPlan, an_absent_plan_takes_the_habits_of_the_framework) {
    Framework framework;
    framework.overlap = false;
    framework.bucket = 64_MiB;
    framework.first_bucket = 2_MiB;
    const Reading reading = read("", framework);
    EXPECT_THAT(reading.errors, IsEmpty());
    EXPECT_EQ(reading.request.bucket, 64_MiB);
    EXPECT_EQ(reading.request.first_bucket, 2_MiB);
    EXPECT_FALSE(reading.request.overlap);
    EXPECT_EQ(reading.request.tp, 1);
    EXPECT_EQ(reading.request.split.zero, 0);
    EXPECT_EQ(reading.request.microbatch, 0);
}

TEST(ReadPlan, what_is_written_wins) {
    const Reading reading = read("{bucket: 10 MiB, first_bucket: 512 KiB, overlap: false, microbatch: 4}");
    EXPECT_THAT(reading.errors, IsEmpty());
    EXPECT_EQ(reading.request.bucket, 10_MiB);
    EXPECT_EQ(reading.request.first_bucket, 512_KiB);
    EXPECT_FALSE(reading.request.overlap);
    EXPECT_EQ(reading.request.microbatch, 4);
}

TEST(ReadPlan, a_small_bucket_bounds_the_first_one) { EXPECT_EQ(read("bucket: 64 KiB").request.first_bucket, 64_KiB); }

TEST(ReadPlan, every_key_is_read) {
    const Reading reading = read(
        "{tp: 2, pp: 4, vpp: 2, schedule: interleaved, cp: 2, ep: 1, zero: 3, microbatch: 2, recompute: full,\n"
        "sequence_parallel: true, async_tp: true, context: all-to-all, stage_blocks: [1, 2, 2, 2, 2, 2, 2, 1],\n"
        "zero_keep: true, prefetch: 2, reshard_after_forward: false, replica: 2, shard_within_node: false,\n"
        "overlap_parameter_gather: true}");
    EXPECT_THAT(reading.errors, IsEmpty());
    const PlanRequest& request = reading.request;
    EXPECT_EQ(request.tp, 2);
    EXPECT_EQ(request.pp, 4);
    EXPECT_EQ(request.cp, 2);
    EXPECT_EQ(request.ep, 1);
    EXPECT_EQ(request.replica, 2);
    EXPECT_EQ(request.microbatch, 2);
    EXPECT_EQ(request.split.vpp, 2);
    EXPECT_EQ(request.split.schedule, Schedule::interleaved);
    EXPECT_THAT(request.split.stage_blocks, ElementsAre(1, 2, 2, 2, 2, 2, 2, 1));
    EXPECT_TRUE(request.split.sequence_parallel);
    EXPECT_TRUE(request.split.async_tp);
    EXPECT_EQ(request.split.context, ContextAlgorithm::all_to_all);
    EXPECT_EQ(request.split.recompute, Recompute::full);
    EXPECT_EQ(request.split.zero, 3);
    EXPECT_TRUE(request.split.zero_keep);
    EXPECT_EQ(request.split.prefetch, 2);
    EXPECT_FALSE(request.split.reshard_after_forward);
    EXPECT_TRUE(read("{zero: 1, shard_within_node: true}").request.shard_within_node);
    EXPECT_FALSE(read("{zero: 2, overlap_parameter_gather: false}").request.split.overlap_parameter_gather);
    EXPECT_EQ(read("{recompute: selective}").request.split.recompute, Recompute::selective);
}

TEST(ReadPlan, defaults_may_be_written_where_they_say_nothing) {
    EXPECT_THAT(read("{tp: 1, pp: 1, vpp: 1, schedule: gpipe, cp: 1, context: ring, ep: 1, zero: 0, recompute: none,\n"
                     "sequence_parallel: false, async_tp: false, zero_keep: false, prefetch: 1,\n"
                     "reshard_after_forward: true, replica: 1, shard_within_node: false,\n"
                     "overlap_parameter_gather: true}")
                    .errors,
                IsEmpty());
}

TEST(ReadPlan, several_chunks_a_stage_are_interleaved_unless_told_otherwise) {
    EXPECT_EQ(read("{pp: 2, vpp: 2}").request.split.schedule, Schedule::interleaved);
    EXPECT_EQ(read("{pp: 2}").request.split.schedule, Schedule::one_forward_one_backward);
    EXPECT_EQ(read("{pp: 2, schedule: gpipe}").request.split.schedule, Schedule::gpipe);
}

struct Refused {
    const char* text;
    const char* hint;
};

class ReadPlanRefuses : public testing::TestWithParam<Refused> {};

TEST_P(ReadPlanRefuses, with_the_value_to_use) {
    EXPECT_THAT(read(GetParam().text).errors, ElementsAre(HasSubstr(GetParam().hint)));
}

INSTANTIATE_TEST_SUITE_P(
    Contradictions, ReadPlanRefuses,
    testing::Values(Refused{"sequence_parallel: true", "tp is 1; use tp of 2 or more"},
                    Refused{"{tp: 2, async_tp: true}", "add sequence_parallel: true"},
                    Refused{"vpp: 2", "use pp of 2 or more, or vpp: 1"},
                    Refused{"{pp: 2, vpp: 2, schedule: 1f1b}", "use schedule: interleaved, or vpp: 1"},
                    Refused{"{pp: 2, schedule: interleaved}", "use vpp of 2 or more, or schedule: 1f1b"},
                    Refused{"{pp: 2, stage_blocks: [4, 4, 4]}", "3 counts for pp 2 x vpp 1 = 2 chunks"},
                    Refused{"context: all-to-all", "use cp of 2 or more, or context: ring"},
                    Refused{"{zero: 1, zero_keep: true}", "use zero: 2 or 3, or zero_keep: false"},
                    Refused{"prefetch: 2", "use zero: 3, or prefetch: 1"},
                    Refused{"{zero: 2, reshard_after_forward: false}", "use zero: 3, or reshard_after_forward: true"},
                    Refused{"overlap_parameter_gather: false", "use zero: 1 or 2, or overlap_parameter_gather: true"},
                    Refused{"replica: 2", "use zero of 1 to 3, or replica: 1"},
                    Refused{"shard_within_node: true", "use zero of 1 to 3, or shard_within_node: false"},
                    Refused{"{zero: 3, replica: 2, shard_within_node: true}", "keep one of them"}));

INSTANTIATE_TEST_SUITE_P(
    Wrong, ReadPlanRefuses,
    testing::Values(Refused{"tp: 0", "wants a whole number"}, Refused{"tp: two", "whole number"},
                    Refused{"bucket: 25", "bucket: wants a size"}, Refused{"bucket: 0", "from 1 B to 1 TiB"},
                    Refused{"first_bucket: 2 TiB", "from 1 B to 1 TiB"}, Refused{"bucket: 25 GB/s", "bucket"},
                    Refused{"overlap: maybe", "true or false"}, Refused{"microbatch: 0", "from 1 to"},
                    Refused{"schedule: 1f2b", "did you mean '1f1b'"},
                    Refused{"recompute: some", "none, selective, full"}, Refused{"zero: 4", "from 0 to 3"},
                    Refused{"stage_blocks: []", "stage_blocks"},
                    Refused{"{pp: 2, stage_blocks: [4, -4]}", "counts from 0"},
                    Refused{"{pp: 2, stage_blocks: [4, many]}", "whole number"},
                    Refused{"prefetch: -1", "from 0 to 1000"}, Refused{"context: rings", "did you mean 'ring'"},
                    Refused{"buckets: 25 MiB", "did you mean 'bucket'"}, Refused{"25 MiB", "plan"}));

TEST(ReadPlan, all_errors_are_reported_at_once_with_their_place) {
    EXPECT_THAT(read("tp: 0\npp: x\nbuckt: 1 MiB\noverlap: 7\n").errors,
                testing::UnorderedElementsAre(HasSubstr("plan.yaml:1:5: tp: "), HasSubstr("plan.yaml:2:5: pp: "),
                                              HasSubstr("plan.yaml:3:1"), HasSubstr("plan.yaml:4:10")));
    EXPECT_THAT(read("async_tp: true\nzero_keep: true\n").errors,
                ElementsAre(HasSubstr("plan.yaml:1:11: async_tp"), HasSubstr("plan.yaml:2:12: zero_keep")));
}

}  // namespace
}  // namespace lockstep::plan
