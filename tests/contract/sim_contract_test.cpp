// The simulator keeps the contract of executors.
#include <gtest/gtest.h>

#include "contract/contract.hpp"
#include "contract/graphs.hpp"
#include "sim/sim_executor.hpp"
#include "step/check.hpp"

namespace lockstep::contract {
namespace {

/// 5 us for a kernel; 8 us latency and 1 us for each 100 bytes of communication.
class PlainDurations final : public step::Durations {
public:
    Seconds compute(const step::StepGraph&, int, const step::OpInstance&) const override { return 5_us; }
    step::CommunicationTime communication(const step::StepGraph&, int, const step::OpInstance& op) const override {
        return {8_us, op.op->bytes / Bandwidth{1e8}};
    }
    double compute_slowdown() const override { return 0.2; }
};

class SimContract : public testing::TestWithParam<int> {};

TEST_P(SimContract, graphs_run_in_order_with_every_dependency_kept) {
    const PlainDurations durations;
    for (const NamedGraph& named : all_graphs(GetParam())) {
        SCOPED_TRACE(named.name);
        step::check(named.graph);
        sim::SimExecutor executor(durations, {.device = "plain", .host_per_op = {}, .seed = 1});
        executor.prepare(named.graph);
        const auto records = run_steps(executor, 4);
        ASSERT_EQ(records.size(), 4u);
        expect_contract(named.graph, named.graph.classes[0], records);
        EXPECT_EQ(records[0].multiplicity, GetParam());
        EXPECT_GT(executor.memory().total.value, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SimContract, testing::Values(1, 2, 4));

}  // namespace
}  // namespace lockstep::contract
