// The real executors keep the contract of executors, on ranks that are threads.
#include <gtest/gtest.h>

#include "backend/backend.hpp"
#include "contract/contract.hpp"
#include "contract/graphs.hpp"
#include "step/check.hpp"
#include "world/world.hpp"

namespace lockstep::contract {
namespace {

class ExecutorContract : public testing::TestWithParam<int> {};

TEST_P(ExecutorContract, graphs_run_in_order_with_every_dependency_kept) {
    for (const NamedGraph& named : all_graphs(GetParam())) {
        SCOPED_TRACE(named.name);
        step::check(named.graph);
        world::run_thread_world(GetParam(), [&](world::World& world) {
            const auto executor = backend::make_executor(world);
            executor->prepare(named.graph);
            const auto records = run_steps(*executor, 5);
            ASSERT_EQ(records.size(), 5U);
            EXPECT_EQ(records[0].rank, world.rank());
            expect_contract(named.graph, named.graph.classes[0], records);
            EXPECT_GT(executor->memory().total.value, 0);
        });
    }
}

TEST_P(ExecutorContract, reduced_values_are_those_of_all_ranks) {
    // a = 3 everywhere: its mean is 3. b = 5, scattered and gathered as a mean: 5 again. twice = 2 + 2 around the ring.
    const auto expected = [](const std::string& graph, const std::string& tensor) {
        if (graph == "ring_shift") return 4.0F;
        return tensor == "a" ? 3.0F : 5.0F;
    };
    for (const NamedGraph& named : all_graphs(GetParam())) {
        if (named.name != "scatter_and_gather" && named.name != "ring_shift") continue;
        world::run_thread_world(GetParam(), [&](world::World& world) {
            const auto executor = backend::make_executor(world);
            executor->prepare(named.graph);
            run_steps(*executor, 2);
            for (const step::TensorId id : named.graph.reduced_gradients)
                for (const float value : executor->read(id))
                    EXPECT_EQ(value, expected(named.name, named.graph.tensor(id).name)) << named.graph.tensor(id).name;
        });
    }
}

TEST_P(ExecutorContract, every_communicator_carries_what_is_sent) {
    const step::StepGraph graph = linear_classifier(GetParam());
    world::run_thread_world(GetParam(), [&](world::World& world) {
        const auto executor = backend::make_executor(world);
        executor->prepare(graph);
        EXPECT_NO_THROW(executor->check_wire());
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExecutorContract, testing::Values(1, 2, 4));

}  // namespace
}  // namespace lockstep::contract
