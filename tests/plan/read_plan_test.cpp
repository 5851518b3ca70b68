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
    EXPECT_EQ(reading.request.zero, 0);
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

TEST(ReadPlan, every_known_key_is_accepted_at_the_value_this_version_runs) {
    EXPECT_THAT(read("{tp: 1, pp: 1, vpp: 1, schedule: gpipe, cp: 1, ep: 1, zero: 0, recompute: none, "
                     "sequence_parallel: false}")
                    .errors,
                IsEmpty());
}

struct Refused {
    const char* text;
    const char* hint;
};

class ReadPlanRefuses : public testing::TestWithParam<Refused> {};

TEST_P(ReadPlanRefuses, what_this_version_does_not_run_with_the_value_to_use) {
    EXPECT_THAT(read(GetParam().text).errors, ElementsAre(HasSubstr(GetParam().hint)));
}

INSTANTIATE_TEST_SUITE_P(Later, ReadPlanRefuses,
                         testing::Values(Refused{"tp: 16", "use tp: 1"}, Refused{"pp: 2", "use pp: 1"},
                                         Refused{"vpp: 2", "use vpp: 1"}, Refused{"cp: 2", "use cp: 1"},
                                         Refused{"ep: 8", "use ep: 1"}, Refused{"zero: 3", "use zero: 0"},
                                         Refused{"recompute: full", "use recompute: none"},
                                         Refused{"recompute: selective", "use recompute: none"},
                                         Refused{"sequence_parallel: true", "use sequence_parallel: false"}));

INSTANTIATE_TEST_SUITE_P(
    Wrong, ReadPlanRefuses,
    testing::Values(Refused{"tp: 0", "wants a whole number"}, Refused{"tp: two", "whole number"},
                    Refused{"bucket: 25", "bucket: wants a size"}, Refused{"bucket: 0", "from 1 B to 1 TiB"},
                    Refused{"first_bucket: 2 TiB", "from 1 B to 1 TiB"}, Refused{"bucket: 25 GB/s", "bucket"},
                    Refused{"overlap: maybe", "true or false"}, Refused{"microbatch: 0", "from 1 to"},
                    Refused{"schedule: 1f2b", "did you mean '1f1b'"},
                    Refused{"recompute: some", "none, selective, full"},
                    Refused{"buckets: 25 MiB", "did you mean 'bucket'"}, Refused{"25 MiB", "plan"}));

TEST(ReadPlan, all_errors_are_reported_at_once_with_their_place) {
    EXPECT_THAT(read("tp: 2\npp: 4\nbuckt: 1 MiB\noverlap: 7\n").errors,
                testing::UnorderedElementsAre(HasSubstr("plan.yaml:1:5: tp: 2"), HasSubstr("plan.yaml:2:5: pp: 4"),
                                              HasSubstr("plan.yaml:3:1"), HasSubstr("plan.yaml:4:10")));
}

}  // namespace
}  // namespace lockstep::plan
