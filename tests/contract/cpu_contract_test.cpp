// The CPU executor keeps the contract of executors, on ranks that are threads.
#include <gtest/gtest.h>

#include "contract/contract.hpp"
#include "contract/graphs.hpp"
#include "cpu/cpu_executor.hpp"
#include "step/check.hpp"
#include "world/clock_sync.hpp"
#include "world/world.hpp"

namespace lockstep::contract {
namespace {

class CpuContract : public testing::TestWithParam<int> {};

TEST_P(CpuContract, graphs_run_in_order_with_every_dependency_kept) {
    for (const NamedGraph& named : all_graphs(GetParam())) {
        SCOPED_TRACE(named.name);
        step::check(named.graph);
        world::run_thread_world(GetParam(), [&](world::World& world) {
            cpu::CpuExecutor executor(world, {.threads = 1, .epoch = world::steady_now(), .cpu_model = "test"});
            executor.prepare(named.graph);
            const auto records = run_steps(executor, 4);
            ASSERT_EQ(records.size(), 4U);
            EXPECT_EQ(records[0].rank, world.rank());
            expect_contract(named.graph, named.graph.classes[0], records);
            EXPECT_GT(executor.memory().total.value, 0);
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CpuContract, testing::Values(1, 2, 4));

}  // namespace
}  // namespace lockstep::contract
