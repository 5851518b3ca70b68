#include "experiment/failures.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.hpp"

namespace lockstep::experiment {
namespace {

using testing::HasSubstr;

using FailuresOf = ExperimentFile;

std::string with(const std::string& failures) { return fmt::format("{}failures: {}\n", smallest, failures); }

TEST_F(FailuresOf, an_experiment_without_them_has_none) { EXPECT_FALSE(load(smallest).points[0].failures); }

TEST_F(FailuresOf, keys_are_read_and_defaults_are_no_detection_time_and_thirty_days_of_work) {
    const auto failures = *load(with("{mtbf_per_gpu: 50000 h, checkpoint: 30 s, restart: 5 min}")).points[0].failures;
    EXPECT_EQ(failures.mtbf_per_gpu, Seconds{50000 * 3600.0});
    EXPECT_EQ(std::get<CheckpointTime>(failures.checkpoint).time, 30_s);
    EXPECT_EQ(failures.restart, 300_s);
    EXPECT_EQ(failures.detect, 0_s);
    EXPECT_EQ(failures.work, Seconds{30 * 86400.0});
    EXPECT_FALSE(failures.interval);
}

TEST_F(FailuresOf, a_checkpoint_may_be_a_rate_and_partly_in_the_background) {
    const auto failures =
        *load(
             with(
                 "{mtbf_per_gpu: 2000 d, checkpoint: {rate: 2 GB/s}, background: 1 min, interval: 30 min, restart: 0}"))
             .points[0]
             .failures;
    EXPECT_EQ(std::get<CheckpointRate>(failures.checkpoint).rate, 2_GBps);
    EXPECT_EQ(failures.background, 60_s);
    EXPECT_EQ(*failures.interval, 1800_s);
}

TEST_F(FailuresOf, lists_make_points_and_the_series_is_the_same_without_failures) {
    const auto loaded =
        load(with("{mtbf_per_gpu: [10000 h, 50000 h], checkpoint: 30 s, interval: [auto, 20 min], restart: 5 min}"));
    ASSERT_EQ(loaded.points.size(), 4U);
    EXPECT_EQ(loaded.points[3].label, "failures.mtbf_per_gpu=50000 h failures.interval=20 min");
    EXPECT_EQ(loaded.points[0].series_text(), load(smallest).points[0].series_text());
    EXPECT_EQ(loaded.points[3].merged.find("failures")->find("interval")->text(), "20 min");
    EXPECT_EQ(loaded.points[0].merged.find("failures")->find("detect")->text(), "0 s");
}

TEST_F(FailuresOf, bad_values_are_refused_at_their_place) {
    const auto refusal = [&](const std::string& failures) { return failure_of(with(failures)); };
    EXPECT_THAT(refusal("{mtbf_per_gpu: 0, checkpoint: 30 s, restart: 5 min}"),
                HasSubstr("mine.yaml:3:26: mtbf_per_gpu: wants more than 0"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: -5 h, checkpoint: 30 s, restart: 5 min}"), HasSubstr("negative"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: {rate: 0}, restart: 5 min}"),
                HasSubstr("rate: wants more than 0"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: 0, restart: 5 min}"),
                HasSubstr("checkpoint: wants more than 0"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: 30, restart: 5 min}"), HasSubstr("wants a time"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: 30 s}"), HasSubstr("'restart' is missing"));
    EXPECT_THAT(refusal("{checkpoint: 30 s, restart: 1 s}"), HasSubstr("'mtbf_per_gpu' is missing"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: 30 s, restart: 1 s, intervall: auto}"),
                HasSubstr("did you mean 'interval'"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: 30 s, restart: 1 s, interval: 20 s}"),
                HasSubstr("interval: 20 s is shorter than a checkpoint"));
    EXPECT_THAT(refusal("{mtbf_per_gpu: 5 h, checkpoint: 1 s, background: 1 min, restart: 1 s, interval: 20 s}"),
                HasSubstr("shorter than a checkpoint"));
    EXPECT_THAT(refusal("7"), HasSubstr("failures"));
}

}  // namespace
}  // namespace lockstep::experiment
