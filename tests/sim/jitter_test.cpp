// Jitter: a folded class waits for the latest of its ranks as all of them would.
#include <gtest/gtest.h>

#include "cost/cost_model.hpp"
#include "fit/quantiles.hpp"
#include "sim/predict.hpp"
#include "sim/small_graph.hpp"
#include "sim/worlds.hpp"

namespace lockstep::sim {
namespace {

machine::Variation jitter(fit::Family family, double cv) {
    machine::Variation variation;
    variation.jitter = machine::Jitter{family, cv};
    return variation;
}

/// Times of the last of three steps over seeds.
std::vector<double> step_times(const step::StepGraph& graph, const step::Durations& durations,
                               const machine::Variation& variation, Fold fold, int seeds) {
    std::vector<double> times;
    for (int seed = 1; seed <= seeds; ++seed) {
        const auto records =
            predict(graph, durations, 3,
                    {.device = "test", .seed = static_cast<std::uint64_t>(seed), .variation = variation, .fold = fold});
        Nanoseconds end[3];
        for (const step::StepRecord& r : records) end[r.step] = std::max(end[r.step], r.end);
        times.push_back((end[2] - end[1]).seconds().value);
    }
    return times;
}

// One kernel of 100 us, cv 0.1, then an all-reduce of k ranks: the step takes 100 us (1 + 0.1 z) + 10 us, z the largest
// of k standard normals, whose mean is 1.0294, 1.8675 and 2.5076 for k = 4, 20, 100 (Harter 1961).
TEST(Jitter, of_one_kernel_is_the_largest_of_k_normals) {
    for (const auto& [k, mean] : {std::pair{4, 1.0294}, {20, 1.8675}, {100, 2.5076}}) {
        SmallGraph g({.dp = k});
        g.stage("all");
        const step::TensorId x = g.tensor("x", step::Lifetime::carried);
        g.kernel("kernel", 100_us, {x}, {x});
        g.all_reduce("sum", {10_us, {}}, x);
        const auto times = step_times(g.graph, g.durations, jitter(fit::Family::normal, 0.1), Fold::alike, 2000);
        // Standard error of the mean: below 0.1 x 100 us / sqrt(2000) = 0.22 us.
        EXPECT_NEAR(fit::mean(times), 110e-6 + 10e-6 * mean, 0.7e-6) << k;
    }
}

TEST(Jitter, is_the_same_for_the_same_seed) {
    SmallGraph g({.dp = 8});
    g.stage("all");
    const step::TensorId x = g.tensor("x", step::Lifetime::carried);
    g.kernel("kernel", 100_us, {x}, {x});
    g.all_reduce("sum", {10_us, {}}, x);
    const auto variation = jitter(fit::Family::lognormal, 0.2);
    EXPECT_EQ(step_times(g.graph, g.durations, variation, Fold::alike, 5),
              step_times(g.graph, g.durations, variation, Fold::alike, 5));
    const auto times = step_times(g.graph, g.durations, variation, Fold::alike, 5);
    EXPECT_NE(times[0], times[1]);
}

struct Case {
    plan::Mesh mesh;
    int zero;
    fit::Family family;
    double cv;
};
class FoldedJitter : public testing::TestWithParam<Case> {};

TEST_P(FoldedJitter, has_the_distribution_of_all_ranks) {
    const Case& c = GetParam();
    plan::Plan plan;
    plan.mesh = c.mesh;
    plan.split.zero = c.zero;
    plan.micro_batch = 4;
    plan.accumulation = c.mesh.pp * 2;
    plan.optimizer = plan::Optimizer::adam;
    const machine::Machine machine = shipped_machine("{node: dgx-a100-40gb, count: 8, network: ib-hdr-8}");
    const model::Model model = small_gpt(4, false);
    const step::StepGraph graph = step::build_step({.model = model,
                                                    .plan = plan,
                                                    .framework = {},
                                                    .placement = machine.place(plan.mesh.ranks()),
                                                    .precision = Precision::fp32,
                                                    .seed = 1,
                                                    .input = std::nullopt});
    const cost::CostModel durations(machine, graph.placement);
    const auto even = step_times(graph, durations, {}, Fold::alike, 1);
    const auto folded = step_times(graph, durations, jitter(c.family, c.cv), Fold::alike, 40);
    const auto all = step_times(graph, durations, jitter(c.family, c.cv), Fold::none, 40);
    // What jitter costs in the mean and at the 95th percentile, folded and for all ranks.
    const double mean_folded = fit::mean(folded) / even[0] - 1, mean_all = fit::mean(all) / even[0] - 1;
    const double p95_folded = fit::p95(folded) / even[0] - 1, p95_all = fit::p95(all) / even[0] - 1;
    SCOPED_TRACE(
        fmt::format("mean {:.4f} of {:.4f}, p95 {:.4f} of {:.4f}", mean_folded, mean_all, p95_folded, p95_all));
    EXPECT_GT(mean_all, 0);
    // Joins of paths are approximated: the cost of jitter is right to about a quarter.
    EXPECT_NEAR(mean_folded, mean_all, 0.3 * mean_all + 0.002);
    EXPECT_NEAR(p95_folded, p95_all, 0.3 * p95_all + 0.004);
}

INSTANTIATE_TEST_SUITE_P(Plans, FoldedJitter,
                         testing::Values(Case{{.dp = 32}, 0, fit::Family::normal, 0.1},
                                         Case{{.dp = 16}, 3, fit::Family::lognormal, 0.3},
                                         Case{{.tp = 8}, 0, fit::Family::gamma, 0.2},
                                         Case{{.tp = 4, .dp = 8}, 0, fit::Family::lognormal, 0.2},
                                         Case{{.tp = 2, .dp = 4, .pp = 4}, 1, fit::Family::normal, 0.2},
                                         Case{{.dp = 8, .pp = 4}, 0, fit::Family::exponential, 1}));

}  // namespace
}  // namespace lockstep::sim
