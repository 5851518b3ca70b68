#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "search/bounds.hpp"
#include "search/estimate.hpp"
#include "search/search.hpp"
#include "search/simulate_plan.hpp"
#include "search/subjects.hpp"

namespace lockstep::search {
namespace {

std::vector<plan::Candidate> sample(const plan::Space& space, std::size_t count, unsigned seed) {
    std::vector<plan::Candidate> some = space.candidates;
    std::mt19937 random(seed);
    std::shuffle(some.begin(), some.end(), random);
    some.resize(std::min(count, some.size()));
    return some;
}

/// Share of the sorted values' place.
double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

class EstimatesOf : public testing::TestWithParam<const char*> {};

TEST_P(EstimatesOf, random_plans_are_near_the_simulator) {
    const SmallWorld world(small_gpt("", 64, GetParam()));
    Pieces pieces(world.subject());
    Estimator estimator(world.subject(), pieces);
    const unsigned seed = std::random_device{}();
    std::vector<double> time_errors, memory_errors;
    for (const plan::Candidate& candidate : sample(world.space(), 60, seed)) {
        const Estimate estimate = estimator.estimate(candidate.plan);
        const auto run = simulate_plan(world.subject(), candidate.plan);
        time_errors.push_back(std::abs(estimate.time() / run.step_time.median - 1));
        memory_errors.push_back(std::abs(estimate.memory / run.memory.total - 1));
    }
    EXPECT_LT(quantile(time_errors, 0.5), time_margin) << "seed " << seed;
    EXPECT_LT(quantile(memory_errors, 0.5), memory_margin) << "seed " << seed;
    RecordProperty("time_median", std::to_string(quantile(time_errors, 0.5)));
    RecordProperty("time_p95", std::to_string(quantile(time_errors, 0.95)));
    RecordProperty("memory_p95", std::to_string(quantile(memory_errors, 0.95)));
}

INSTANTIATE_TEST_SUITE_P(Frameworks, EstimatesOf, testing::Values("megatron-lm-2021", "pytorch-ddp"),
                         [](const auto& of) { return std::string(of.param).substr(0, 7); });

TEST(Bounds, are_below_the_simulator_for_random_plans) {
    const SmallWorld world(small_gpt(""));
    const Bounds bounds(world.subject());
    const unsigned seed = std::random_device{}();
    for (const plan::Candidate& candidate : sample(world.space(), 40, seed)) {
        const auto run = simulate_plan(world.subject(), candidate.plan);
        EXPECT_LE(bounds.time(candidate.plan), run.step_time.median) << plan::plan_text(candidate.request) << seed;
        EXPECT_LE(bounds.memory(candidate.plan), run.memory.total) << plan::plan_text(candidate.request) << seed;
    }
}

/// bf16 with Adam: 2 + 2 + 12 bytes a parameter; ZeRO 1 over 4 ranks: 2 + 2 + 3; pp 4 leaves a quarter of them.
TEST(Bounds, of_memory_count_bytes_a_parameter) {
    const SmallWorld world(small_gpt(""));
    const Bounds bounds(world.subject());
    const auto parameters = static_cast<double>(world.subject().experiment.model.parameter_count());
    EXPECT_DOUBLE_EQ(bounds.memory(world.plan("{pp: 4}")).value, parameters / 4 * 16);
    EXPECT_DOUBLE_EQ(bounds.memory(world.plan("{pp: 4, zero: 1}")).value, parameters / 4 * 7);
}

}  // namespace
}  // namespace lockstep::search
