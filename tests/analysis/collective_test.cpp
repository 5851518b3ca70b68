#include "analysis/collective.hpp"

#include <gtest/gtest.h>

#include "analysis/analyze.hpp"
#include "step/collective_step.hpp"

namespace lockstep::analysis {
namespace {

TEST(Collective, bandwidths_are_those_of_nccl_tests) {
    // 1 GB over 4 ranks in 10 ms: algbw 100 GB/s; busbw 2 x 3/4 of it for an all-reduce, 3/4 for an all-gather.
    const machine::Placement four{4, 4};
    const auto reduced = find_collective(
        step::build_collective(CollectiveKind::all_reduce, Bytes{1e9}, DType::fp32, four), Seconds{0.01});
    ASSERT_TRUE(reduced);
    EXPECT_DOUBLE_EQ(reduced->buffer.value, 1e9);
    EXPECT_NEAR(reduced->algorithm.value, 1e11, 1);
    EXPECT_NEAR(reduced->bus.value, 1.5e11, 1);
    const auto gathered = find_collective(
        step::build_collective(CollectiveKind::all_gather, Bytes{1e9}, DType::fp32, four), Seconds{0.01});
    EXPECT_DOUBLE_EQ(gathered->buffer.value, 1e9);
    EXPECT_NEAR(gathered->bus.value, 0.75e11, 1);
}

TEST(Collective, a_run_of_one_has_its_bus_bandwidth_for_throughput_and_no_speed_up) {
    const step::StepGraph graph = step::build_collective(CollectiveKind::all_reduce, Bytes{1e9}, DType::fp32, {4, 4});
    record::RunDescription run;
    run.ranks = 4;
    run.throughput_unit = "GB/s busbw";
    std::vector<step::StepRecord> records;
    for (int s = 0; s < 3; ++s) {
        step::StepRecord record;
        record.step = s;
        record.multiplicity = 4;
        record.begin = {s * 10'000'000};
        record.end = {(s + 1) * 10'000'000};
        record.spans = {{0, 0, 0, record.begin, record.begin, record.end}};
        records.push_back(record);
    }
    const RunFindings found = analyze_records(run, graph, records);
    ASSERT_TRUE(found.collective);
    EXPECT_NEAR(found.throughput, 150, 1e-6);
    EXPECT_NEAR(found.breakdown.exposed_communication.value, 0.01, 1e-9);
    RunFindings more = found;
    more.ranks = 8;
    const SeriesFindings series = make_series({found, more}, {"", ""}, std::nullopt);
    EXPECT_FALSE(series.points[1].efficiency);
    EXPECT_TRUE(series.warnings.empty());
}

}  // namespace
}  // namespace lockstep::analysis
