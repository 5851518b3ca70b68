#include "analysis/analyze.hpp"

#include <gtest/gtest.h>

#include "analysis/breakdown.hpp"
#include "base/error.hpp"

namespace lockstep::analysis {
namespace {

using step::Op;

/// Three streams and four ops: forward (compute), all_reduce (dp), update (optimizer), load (input).
class Analyze : public testing::Test {
protected:
    Analyze() {
        graph_.mesh.dp = 2;
        graph_.streams = {{step::Stream::Lane::compute, {}, "compute"},
                          {step::Stream::Lane::communication, {0}, "dp"},
                          {step::Stream::Lane::input, {}, "input"}};
        graph_.communicators = {{"dp", {plan::Axis::dp}, 2}};
        step::Block block;
        block.ops = {op("forward", step::Phase::forward, step::Compute{step::Gemm{1, 2, 2, 2}}, 0),
                     op("all_reduce", step::Phase::gradient_sync, step::Collective{.communicator = {0}, .count = 4}, 1),
                     op("update", step::Phase::optimizer, step::Compute{step::OptimizerUpdate{}}, 0),
                     op("load", step::Phase::input, step::Copy{.kind = step::Copy::Kind::input}, 2)};
        block.ops[0].flops = Flops{100};
        graph_.blocks = {block};
        graph_.classes = {{"all", {{{{0}, 0, 0}}}, 2, 0}};
        graph_.class_of_stage = {{0}};
        run_.ranks = 2;
        run_.global_batch = 8;
        run_.warmup_steps = 1;
        run_.experiment = "test";
    }

    static Op op(const char* name, step::Phase phase, step::OpKind kind, int stream) {
        Op result;
        result.name = name;
        result.phase = phase;
        result.kind = std::move(kind);
        result.stream = {stream};
        return result;
    }
    static step::Span span(int op_number, int ready, int start, int end) {
        return {op_number, 0, 0, {ready}, {start}, {end}};
    }

    step::StepGraph graph_;
    record::RunDescription run_;
};

TEST_F(Analyze, a_breakdown_counts_each_instant_once_and_sums_to_the_window) {
    step::StepRecord record;
    // load 5..20, forward 10..50, all_reduce 40..90 with the last arrival at 60, gap 90..95, update 95..98, window
    // 0..100.
    record.spans = {span(3, 5, 5, 20), span(0, 10, 10, 50), span(1, 40, 40, 90), span(2, 90, 95, 98)};
    const auto result = break_down(graph_, record, {{0}, {100}}, {{{1, 0}, {60}}});
    const auto ns = [](Seconds s) { return s.value * 1e9; };
    EXPECT_NEAR(ns(result.parts.compute), 40, 1e-6);                // 10..50
    EXPECT_NEAR(ns(result.parts.optimizer), 3, 1e-6);               // 95..98
    EXPECT_NEAR(ns(result.parts.wait), 10, 1e-6);                   // 50..60
    EXPECT_NEAR(ns(result.parts.exposed_communication), 30, 1e-6);  // 60..90
    EXPECT_NEAR(ns(result.parts.input), 5, 1e-6);                   // 5..10
    EXPECT_NEAR(ns(result.parts.launch), 5, 1e-6);                  // 90..95
    EXPECT_NEAR(ns(result.parts.idle), 7, 1e-6);                    // 0..5 and 98..100
    EXPECT_NEAR(ns(result.parts.total()), 100, 1e-6);
    EXPECT_NEAR(ns(result.communication), 50, 1e-6);
    EXPECT_NEAR(ns(result.hidden_communication), 10, 1e-6);  // 40..50
}

TEST_F(Analyze, step_times_are_differences_of_completions_on_the_last_rank_and_warm_up_is_left_out) {
    std::vector<step::StepRecord> records;
    // Step ends: rank 0 at 100, 210, 320, 400; rank 1 at 110, 200, 330, 450: counted steps take 100, 120, 120 ns.
    const int ends[4][2] = {{100, 110}, {210, 200}, {320, 330}, {400, 450}};
    for (int s = 0; s < 4; ++s)
        for (int rank = 0; rank < 2; ++rank) {
            step::StepRecord record;
            record.step = s;
            record.rank = rank;
            record.begin = {s * 100};
            record.end = {ends[s][rank]};
            record.spans = {span(0, s * 100, s * 100 + 1, ends[s][rank])};
            records.push_back(record);
        }
    const RunFindings findings = analyze_records(run_, graph_, records);
    EXPECT_EQ(findings.counted_steps, 3);
    EXPECT_NEAR(findings.step_time.median.value, 120e-9, 1e-15);
    EXPECT_NEAR(findings.throughput, 8 / 120e-9, 1);
    EXPECT_NEAR(findings.breakdown.total().value, 120e-9, 1e-15);
}

TEST_F(Analyze, steps_without_spans_count_for_times_and_the_breakdown_is_of_those_with_them) {
    // Step s ends at 100 (s + 1); every 3rd one has spans: `forward` for 40 + 10 s / 3 ns of its 100. Of the counted
    // steps 1 to 9 these are 3, 6, 9: 50, 60, 70 ns of compute, in the middle step 60. One step's spans cost 2 ns.
    run_.span_cost = Seconds{2e-9};
    std::vector<step::StepRecord> records;
    for (int s = 0; s < 10; ++s) {
        step::StepRecord record;
        record.step = s;
        record.begin = {100 * s};
        record.end = {100 * (s + 1)};
        if (s % 3 == 0) record.spans = {span(0, 100 * s, 100 * s, 100 * s + 40 + 10 * s / 3)};
        records.push_back(record);
    }
    const RunFindings findings = analyze_records(run_, graph_, records);
    EXPECT_EQ(findings.counted_steps, 9);
    EXPECT_NEAR(findings.step_time.median.value, 100e-9, 1e-15);
    EXPECT_NEAR(findings.breakdown.compute.value, 60e-9, 1e-15);
    EXPECT_NEAR(findings.breakdown.total().value, 100e-9, 1e-15);
    EXPECT_NEAR(findings.breakdown_p95.compute.value, 69e-9, 1e-15);  // 60 + 0.9 (70 - 60)
    EXPECT_EQ(
        findings.spans,
        "every 3rd step (recording them in all would cost 2 % of a step); the breakdown is of 3 of 9 counted steps");
    EXPECT_TRUE(findings.warnings.empty());
}

TEST_F(Analyze, a_capped_gpu_in_counted_steps_is_warned_of_and_one_in_the_warm_up_is_not) {
    std::vector<step::StepRecord> records;
    for (int s = 0; s < 8; ++s) {
        step::StepRecord record;
        record.step = s;
        record.end = {100 * (s + 1)};
        record.spans = {span(0, 100 * s, 100 * s, 100 * s + 50)};
        record.device.emplace().throttle = step::ThrottleReasons{s < 3 ? 0x4U : 0U};
        records.push_back(record);
    }
    run_.warmup_steps = 3;
    EXPECT_TRUE(analyze_records(run_, graph_, records).warnings.empty());
    for (auto& record : records) record.device->throttle = step::ThrottleReasons{0x4};
    const auto findings = analyze_records(run_, graph_, records);
    ASSERT_EQ(findings.warnings.size(), 1U);
    EXPECT_EQ(findings.warnings[0], "rank 0's GPU was slowed down (power cap) in 5 of 5 sampled steps");
}

TEST_F(Analyze, an_mfu_above_one_is_refused_with_a_warning) {
    step::StepRecord record;
    record.step = 1;
    record.end = {100};
    record.spans = {span(0, 0, 0, 100)};
    run_.peak = FlopRate{1e9};  // 100 flops in 100 ns are 1e9 a second
    run_.peak_source = "a data sheet";
    run_.model_flops = Flops{50};
    EXPECT_NEAR(*analyze_records(run_, graph_, {record}).mfu, 0.5, 1e-9);
    run_.model_flops = Flops{150};
    const RunFindings refused = analyze_records(run_, graph_, {record});
    EXPECT_FALSE(refused.mfu);
    ASSERT_EQ(refused.warnings.size(), 1U);
    EXPECT_NE(refused.warnings[0].find("a data sheet"), std::string::npos);
}

TEST_F(Analyze, a_run_that_ended_in_its_warm_up_is_incomplete) {
    step::StepRecord record;
    record.end = {100};
    EXPECT_THROW(analyze_records(run_, graph_, {record}), IncompleteError);
}

RunFindings point(int ranks, double throughput, std::int64_t batch) {
    RunFindings run;
    run.ranks = ranks;
    run.throughput = throughput;
    run.global_batch = batch;
    run.step_time.median = Seconds{static_cast<double>(batch) / throughput};
    return run;
}

TEST(Series, efficiency_is_throughput_over_n_times_the_baseline) {
    // E(4) = 300 / (4 x 100), E(2) = 180 / (2 x 100)
    const auto series =
        make_series({point(4, 300, 128), point(1, 100, 32), point(2, 180, 64)}, {"{}", "{}", "{}"}, std::nullopt);
    ASSERT_EQ(series.points.size(), 3U);
    EXPECT_EQ(series.points[0].ranks, 1);
    EXPECT_DOUBLE_EQ(*series.points[1].efficiency, 0.9);
    EXPECT_DOUBLE_EQ(*series.points[2].efficiency, 0.75);
    EXPECT_DOUBLE_EQ(*series.points[2].speedup, 3.0);
    EXPECT_EQ(series.scaling, Scaling::weak);
}

TEST(Series, a_baseline_of_two_ranks_gives_speedup_in_units_of_it) {
    // N0 = 2: E(4) = 300 / (4/2 x 180) = 0.8333, speed-up 300 / 180
    const auto series = make_series({point(4, 300, 128), point(2, 180, 128)}, {"{}", "{}"}, 2);
    EXPECT_NEAR(*series.points[1].efficiency, 300.0 / 360.0, 1e-12);
    EXPECT_NEAR(*series.points[1].speedup, 300.0 / 180.0, 1e-12);
    EXPECT_EQ(series.scaling, Scaling::strong);
}

TEST(Series, super_linear_scaling_questions_the_baseline) {
    const auto series = make_series({point(1, 100, 32), point(2, 230, 64)}, {"{}", "{}"}, std::nullopt);
    ASSERT_EQ(series.warnings.size(), 1U);
    EXPECT_NE(series.warnings[0].find("baseline"), std::string::npos);
}

TEST(Series, runs_of_different_experiments_are_refused_naming_the_keys) {
    try {
        make_series({point(1, 100, 32), point(2, 180, 64)},
                    {R"({"batch_per_rank": 32, "model": "a"})", R"({"batch_per_rank": 64, "model": "a"})"},
                    std::nullopt);
        FAIL() << "no error";
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("batch_per_rank"), std::string::npos);
        EXPECT_EQ(std::string(error.what()).find("model"), std::string::npos);
    }
}

TEST(Series, a_measured_and_a_predicted_run_make_no_series) {
    auto predicted = point(2, 180, 64);
    predicted.origin = record::Origin::predicted;
    EXPECT_THROW(make_series({point(1, 100, 32), predicted}, {"{}", "{}"}, std::nullopt), InputError);
}

TEST(Series, repeats_are_pooled_to_their_middle_run_and_said_so) {
    const auto series =
        make_series({point(1, 100, 32), point(1, 120, 32), point(1, 110, 32)}, {"{}", "{}", "{}"}, std::nullopt);
    ASSERT_EQ(series.points.size(), 1U);
    EXPECT_DOUBLE_EQ(series.points[0].throughput, 110);
    EXPECT_EQ(series.warnings.size(), 1U);
}

}  // namespace
}  // namespace lockstep::analysis
