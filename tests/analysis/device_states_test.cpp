#include "analysis/device_states.hpp"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

constexpr std::uint64_t idle = 0x1, application_clocks = 0x2, power_cap = 0x4, thermal = 0x20;

step::StepRecord at_clock(int rank, double ghz, std::uint64_t reasons = 0) {
    step::StepRecord record;
    record.rank = rank;
    step::DeviceSample& sample = record.device.emplace();
    sample.sm_clock = Frequency{ghz * 1e9};
    sample.throttle = step::ThrottleReasons{reasons};
    return record;
}

std::vector<std::string> warnings_of(const std::vector<step::StepRecord>& records) {
    DeviceStates states;
    for (const auto& record : records) states.add(record);
    return states.warnings();
}

TEST(DeviceStates, steady_and_equal_gpus_and_steps_without_a_sample_are_nothing_to_warn_of) {
    EXPECT_TRUE(warnings_of({}).empty());
    EXPECT_TRUE(warnings_of({step::StepRecord{}, step::StepRecord{}}).empty());
    std::vector<step::StepRecord> records;
    for (int step = 0; step < 20; ++step)
        for (int rank = 0; rank < 4; ++rank)
            records.push_back(at_clock(rank, 1.9 - 0.02 * rank - 0.05 * (step % 2), idle | application_clocks));
    EXPECT_TRUE(warnings_of(records).empty());
}

TEST(DeviceStates, a_power_cap_in_a_few_steps_or_a_small_share_of_them_is_no_warning) {
    std::vector<step::StepRecord> records;
    for (int step = 0; step < 20; ++step) records.push_back(at_clock(0, 1.9, step < 3 ? power_cap : 0));
    EXPECT_TRUE(warnings_of(records).empty());
    for (int step = 20; step < 100; ++step) records.push_back(at_clock(0, 1.9, step < 22 ? power_cap : 0));
    EXPECT_TRUE(warnings_of(records).empty());  // 5 of 100
    records.push_back(at_clock(0, 1.9, power_cap));
    const auto warnings = warnings_of(records);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0], "rank 0's GPU was slowed down (power cap) in 6 of 101 sampled steps");
}

TEST(DeviceStates, of_several_slowed_ranks_the_worst_is_named_with_the_reasons_of_all) {
    std::vector<step::StepRecord> records;
    for (int step = 0; step < 10; ++step) {
        records.push_back(at_clock(0, 1.9, application_clocks));
        records.push_back(at_clock(1, 1.9, step < 5 ? power_cap : 0));
        records.push_back(at_clock(2, 1.9, step < 8 ? thermal : 0));
    }
    const auto warnings = warnings_of(records);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0],
              "the GPUs of 2 of 3 ranks were slowed down (power cap, thermal slowdown), rank 2's in 8 of 10 sampled "
              "steps");
}

TEST(DeviceStates, a_clock_that_falls_during_the_run_is_warned_of) {
    // Percentiles of 21 values are values: 5th the second, 95th the last but one.
    std::vector<step::StepRecord> records;
    for (int step = 0; step <= 20; ++step) records.push_back(at_clock(0, step < 10 ? 1.98 : 1.41));
    const auto warnings = warnings_of(records);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0], "the clock of rank 0's GPU was between 1.41 GHz and 1.98 GHz over the counted steps");
}

TEST(DeviceStates, one_gpu_slower_than_the_others_is_named_with_its_clock_and_why) {
    std::vector<step::StepRecord> records;
    for (int step = 0; step < 3; ++step)
        for (int rank = 0; rank < 8; ++rank)
            records.push_back(rank == 3 ? at_clock(3, 1.2, power_cap) : at_clock(rank, 1.9));
    const auto warnings = warnings_of(records);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0], "rank 3's GPU ran at 1.2 GHz against 1.9 GHz of the others (power cap)");
}

TEST(DeviceStates, several_slow_gpus_are_counted_against_the_fastest) {
    std::vector<step::StepRecord> records;
    for (int step = 0; step < 3; ++step)
        for (int rank = 0; rank < 4; ++rank) records.push_back(at_clock(rank, rank == 2 ? 1.9 : 1.5 - 0.01 * rank));
    const auto warnings = warnings_of(records);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0], "the GPUs of 3 of 4 ranks ran slower than rank 2's at 1.9 GHz, rank 3's at 1.47 GHz");
}

}  // namespace
}  // namespace lockstep::analysis
