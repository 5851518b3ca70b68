#include "analysis/goodput.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/goodput_simulation.hpp"
#include "base/error.hpp"

namespace lockstep::analysis {
namespace {

constexpr std::uint64_t seed = 11;

FailingJob job(double mtbf, double checkpoint, double downtime, double background = 0, double step = 1) {
    return {Seconds{mtbf}, Seconds{checkpoint}, Seconds{background}, Seconds{downtime}, Seconds{step}};
}

experiment::Failures failures(double mtbf_per_gpu, double checkpoint, double restart) {
    experiment::Failures made;
    made.mtbf_per_gpu = Seconds{mtbf_per_gpu};
    made.checkpoint = experiment::CheckpointTime{Seconds{checkpoint}};
    made.restart = Seconds{restart};
    made.work = Seconds{30.0 * 86400};
    return made;
}

TEST(Goodput, youngs_and_dalys_intervals_are_those_of_their_formulas) {
    // delta = 30 s, M = 10800 s: sqrt(2 x 30 x 10800) = 804.984; delta / 2M = 1/720, so Daly's is
    // 804.984 (1 + 0.0372678/3 + 0.00138889/9) - 30 = 785.109.
    EXPECT_NEAR(young_interval(job(10800, 30, 0)).value, 804.984, 1e-3);
    EXPECT_NEAR(daly_interval(job(10800, 30, 0)).value, 785.109, 1e-3);
    EXPECT_EQ(daly_interval(job(100, 200, 0)).value, 100);  // delta = 2M
}

TEST(Goodput, expected_shares_are_dalys_wall_time_and_sum_to_one) {
    // M = 1000, R = 100, tau = 200, delta = 20: 0.2 exp(-0.1) / (exp(0.22) - 1) = 0.2 x 0.9048374 / 0.2460767.
    const TimeShares shares = expected_shares(job(1000, 20, 100), 200_s);
    EXPECT_NEAR(shares.useful, 0.2 * 0.9048374 / 0.2460767, 1e-7);
    EXPECT_NEAR(shares.downtime, 1 - 0.9048374, 1e-7);
    EXPECT_NEAR(shares.checkpoints, shares.useful / 10, 1e-12);
    EXPECT_NEAR(shares.useful + shares.checkpoints + shares.lost_work + shares.downtime, 1, 1e-12);
}

TEST(Goodput, no_other_interval_is_expected_to_beat_dalys_by_a_thousandth) {
    for (const double checkpoint : {1.0, 30.0, 300.0, 1000.0}) {
        const FailingJob one = job(10800, checkpoint, 300);
        const Seconds daly = daly_interval(one);
        for (const double factor : {0.5, 0.8, 0.95, 1.05, 1.25, 2.0})
            EXPECT_LT(expected_shares(one, factor * daly).useful, expected_shares(one, daly).useful + 1e-3);
    }
}

TEST(Goodput, a_run_without_failures_costs_its_checkpoints_only) {
    // 1000 s of work, a checkpoint of 10 s after each 100 s but the last: 9 x 10 s.
    const RunTimes run = simulate_run(job(1e15, 10, 60), 100_s, 1000_s, seed, 0);
    EXPECT_EQ(run.failures, 0);
    EXPECT_DOUBLE_EQ(run.useful.value, 1000);
    EXPECT_DOUBLE_EQ(run.checkpoints.value, 90);
    EXPECT_DOUBLE_EQ(run.elapsed().value, 1090);
}

/// Mean of 400 long runs against the closed form: their interval of confidence, twice as wide, holds it.
void expect_simulated_as_expected(const FailingJob& one, Seconds interval) {
    const auto runs = simulate_runs(one, interval, 2000 * interval, seed, 400);
    const SimulatedGoodput simulated = goodput_of(runs);
    const TimeShares expected = expected_shares(one, interval);
    EXPECT_NEAR(simulated.mean, expected.useful, simulated.high95 - simulated.low95);
    EXPECT_NEAR(shares_of(runs).downtime, expected.downtime, 0.01);
    EXPECT_NEAR(shares_of(runs).lost_work, expected.lost_work, 0.01);
    for (const RunTimes& run : runs) ASSERT_NEAR(run.useful / (2000 * interval), 1, 1e-9);
}

TEST(Goodput, simulated_runs_agree_with_the_closed_form) {
    RecordProperty("seed", static_cast<int>(seed));
    expect_simulated_as_expected(job(10800, 30, 300), 800_s);
    expect_simulated_as_expected(job(1000, 100, 500), 400_s);  // failures while it restarts and writes are common
}

TEST(Goodput, simulated_runs_agree_with_the_closed_form_when_checkpoints_are_written_in_the_background) {
    RecordProperty("seed", static_cast<int>(seed));
    expect_simulated_as_expected(job(1000, 1, 60, 50), 60_s);
}

TEST(Goodput, dalys_interval_is_as_good_as_the_best_simulated_one) {
    RecordProperty("seed", static_cast<int>(seed));
    const FailingJob one = job(10800, 30, 300, 0, 7);
    const BestInterval best = best_interval(one, 30 * 86400_s, seed, 200);
    EXPECT_LE(best.low, daly_interval(one));
    EXPECT_GE(best.high, daly_interval(one));
    EXPECT_NEAR(7.0 * static_cast<double>(best.steps), daly_interval(one).value, 0.3 * daly_interval(one).value);
}

TEST(Goodput, sixteen_thousand_gpus_that_fail_as_llama_3s_keep_nine_tenths_of_their_time) {
    // 419 interruptions in 54 days on 16,384 GPUs: 50,676 h for each, a failure every 3.09 h. Checkpoints of 10 s and
    // 10 minutes to come back leave what they report: more than 90 % (Llama team 2024, section 3.3.4).
    const double mtbf_per_gpu = 54 * 86400.0 / 419 * 16384;
    const Goodput found = find_goodput(failures(mtbf_per_gpu, 10, 600), 16384, 6_s, {}, seed);
    EXPECT_NEAR(found.failures_per_day, 419.0 / 54, 1e-9);
    EXPECT_GT(found.simulated.mean, 0.9);
    EXPECT_LT(found.simulated.mean, 0.93);
    EXPECT_EQ(found.used.steps, found.best.steps);
    EXPECT_NEAR(found.used.time.value, 6.0 * static_cast<double>(found.used.steps), 1e-9);
    // Fewer GPUs fail less often.
    EXPECT_GT(find_goodput(failures(mtbf_per_gpu, 10, 600), 1024, 6_s, {}, seed).simulated.mean, 0.98);
}

TEST(Goodput, equal_seeds_give_equal_findings) {
    const auto once = [] { return find_goodput(failures(1e8, 20, 300), 8192, 3_s, {}, seed); };
    EXPECT_EQ(once().simulated.mean, once().simulated.mean);
    EXPECT_EQ(once().best.steps, once().best.steps);
}

TEST(Goodput, a_checkpoint_at_a_rate_takes_as_long_as_a_ranks_parameters_and_optimizer_state) {
    experiment::Failures at_a_rate = failures(1e8, 0, 300);
    at_a_rate.checkpoint = experiment::CheckpointRate{2_GBps};
    step::MemoryUse memory;
    memory.parameters = Bytes{2e9};
    memory.optimizer = Bytes{12e9};
    memory.activations = Bytes{50e9};
    EXPECT_NEAR(failing_job(at_a_rate, 1000, 3_s, memory).checkpoint.value, 7, 1e-12);
    EXPECT_NEAR(failing_job(at_a_rate, 1000, 3_s, memory).mtbf.value, 1e5, 1e-6);
    EXPECT_THROW(failing_job(at_a_rate, 1000, 3_s, {}), InputError);
}

TEST(Goodput, a_given_interval_becomes_whole_steps) {
    experiment::Failures given = failures(1e8, 20, 300);
    given.interval = 1000_s;
    const Goodput found = find_goodput(given, 8192, 3_s, {}, seed);
    EXPECT_EQ(found.used.steps, 333);
    EXPECT_LE(found.used.shares.useful, found.best.shares.useful + 1e-3);
}

TEST(Goodput, failures_that_leave_no_progress_are_refused) {
    try {
        find_goodput(failures(60 * 1024, 600, 600), 1024, 3_s, {}, seed);  // a failure a minute
        FAIL();
    } catch (const InputError& failure) {
        EXPECT_THAT(failure.what(), testing::HasSubstr("makes progress impossible"));
        EXPECT_THAT(failure.what(), testing::HasSubstr("1024 ranks"));
    }
    experiment::Failures short_interval = failures(1e8, 20, 300);
    short_interval.interval = 10_s;
    EXPECT_THROW(find_goodput(short_interval, 8192, 3_s, {}, seed), InputError);
    // A step longer than the time between failures can be finished now and then, hence slowly.
    EXPECT_THROW(find_goodput(failures(1024, 0.1, 0.1), 1024, 30_s, {}, seed), InputError);
}

}  // namespace
}  // namespace lockstep::analysis
