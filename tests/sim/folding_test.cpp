// Folding changes nothing: one rank of each colour tells what all of them do.
#include "sim/folding.hpp"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "cost/cost_model.hpp"
#include "sim/predict.hpp"
#include "sim/worlds.hpp"

namespace lockstep::sim {
namespace {

constexpr int steps = 3;

std::vector<step::StepRecord> simulate(const World& world, Fold fold, const machine::Variation& variation = {}) {
    const cost::CostModel durations(world.machine, world.graph.placement);
    return predict(world.graph, durations, steps, {.device = "test", .variation = variation, .fold = fold});
}

/// Each rank apart.
std::map<std::pair<std::int64_t, int>, const step::StepRecord*> by_step_and_rank(
    const std::vector<step::StepRecord>& records) {
    std::map<std::pair<std::int64_t, int>, const step::StepRecord*> result;
    for (const step::StepRecord& record : records) result[{record.step, record.rank}] = &record;
    return result;
}

/// Every span of every folded rank is that of the same rank simulated among all; returns the groups.
std::size_t expect_same(const World& world, const machine::Variation& variation = {}) {
    const auto folded = simulate(world, Fold::alike, variation);
    const auto records = simulate(world, Fold::none, variation);
    const auto all = by_step_and_rank(records);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(steps * world.graph.mesh.ranks()));
    std::int64_t stands_for = 0;
    double worst = 0;
    for (const step::StepRecord& record : folded) {
        stands_for += record.multiplicity;
        const step::StepRecord& alone = *all.at({record.step, record.rank});
        EXPECT_EQ(record.spans.size(), alone.spans.size());
        for (std::size_t i = 0; i < std::min(record.spans.size(), alone.spans.size()); ++i) {
            const auto difference = [&](Nanoseconds a, Nanoseconds b) {
                // Times are whole nanoseconds: one is allowed for rounding.
                const auto apart = std::abs(static_cast<double>((a - b).count)) - 1;
                worst = std::max(worst, apart / static_cast<double>(alone.end.count));
            };
            difference(record.spans[i].start, alone.spans[i].start);
            difference(record.spans[i].end, alone.spans[i].end);
        }
    }
    EXPECT_EQ(stands_for, steps * world.graph.mesh.ranks());
    EXPECT_LE(worst, 1e-9) << world.text;
    return folded.size() / steps;
}

TEST(Folding, tells_the_same_as_all_ranks_on_random_plans_and_clusters) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::size_t folded = 0, ranks = 0;
    for (int trial = 0; trial < 12; ++trial) {
        const World world = random_world(random);
        SCOPED_TRACE(world.text);
        folded += expect_same(world);
        ranks += static_cast<std::size_t>(world.graph.mesh.ranks());
    }
    EXPECT_LT(folded, ranks);  // something was folded
}

TEST(Folding, tells_the_same_beside_stragglers_and_throttled_nodes) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    for (int trial = 0; trial < 6; ++trial) {
        const World world = random_world(random);
        SCOPED_TRACE(world.text);
        machine::Variation variation;
        const int slow = static_cast<int>(random() % static_cast<unsigned>(world.graph.mesh.ranks()));
        variation.speeds.push_back({{slow}, {}, false, {{Seconds{0}, 0.7}}});
        variation.speeds.push_back({{}, {world.graph.placement.nodes() - 1}, false, {{Seconds{1e-3}, 0.9}}});
        expect_same(world, variation);
    }
}

World data_parallel(const std::string& machine_yaml, int ranks) {
    machine::Machine machine = shipped_machine(machine_yaml);
    plan::Plan plan;
    plan.mesh.dp = ranks;
    plan.micro_batch = 2;
    const model::Model model = small_gpt(2, true);
    return {"", machine,
            step::build_step({.model = model,
                              .plan = plan,
                              .framework = {},
                              .placement = machine.place(ranks),
                              .precision = Precision::fp32,
                              .seed = 1,
                              .input = std::nullopt})};
}

std::size_t groups(const World& world, const machine::Variation& variation = {}) {
    return simulate(world, Fold::alike, variation).size() / steps;
}

TEST(Folding, makes_one_rank_of_equal_ones) {
    EXPECT_EQ(groups(data_parallel("{node: dgx-a100-40gb, count: 4, network: ib-hdr-8}", 32)), 1u);
}

TEST(Folding, keeps_a_straggler_apart_and_nothing_else) {
    const World world = data_parallel("{node: dgx-a100-40gb, count: 4, network: ib-hdr-8}", 32);
    machine::Variation variation;
    variation.speeds.push_back({{5}, {}, false, {{Seconds{0}, 0.5}}});
    EXPECT_EQ(groups(world, variation), 2u);
    // Each step waits for it: kernels at half speed, and the last of the ranks tells.
    const auto even = simulate(world, Fold::alike), uneven = simulate(world, Fold::alike, variation);
    EXPECT_GT(uneven.back().end.count, even.back().end.count * 3 / 2);
}

TEST(Folding, keeps_kinds_of_nodes_apart) {
    EXPECT_EQ(groups(data_parallel("{nodes: [{node: dgx-a100-40gb, count: 2}, {node: dgx-1v-16gb, count: 2}], "
                                   "network: ib-edr-4}",
                                   32)),
              2u);
}

TEST(Folding, refuses_ranks_and_nodes_that_are_not_there) {
    const World world = data_parallel("{node: dgx-a100-40gb, count: 2, network: ib-hdr-8}", 16);
    machine::Variation variation;
    variation.speeds.push_back({{16}, {}, false, {{Seconds{0}, 0.5}}});
    EXPECT_THROW(simulate(world, Fold::alike, variation), InputError);
    variation.speeds = {{{}, {2}, false, {{Seconds{0}, 0.5}}}};
    EXPECT_THROW(simulate(world, Fold::alike, variation), InputError);
    variation.speeds = {{{1}, {}, false, {{Seconds{0}, 0}}}};
    EXPECT_THROW(simulate(world, Fold::alike, variation), InputError);
}

}  // namespace
}  // namespace lockstep::sim
