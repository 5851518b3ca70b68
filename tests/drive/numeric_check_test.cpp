#include <atomic>
#include <cmath>

#include "drive/numeric_check.hpp"

#include <gtest/gtest.h>

#include "drive/fake_executor.hpp"

namespace lockstep::drive {
namespace {

class NumericCheckOfFakes : public testing::Test {
protected:
    NumericCheckOfFakes() {
        step::Tensor gradient;
        gradient.name = "w.gradient";
        gradient.shape = {2};
        gradient.parameter = {0};
        graph_.tensors = {gradient};
        graph_.reduced_gradients = {{0}};
        graph_.mesh.dp = 2;
        step::Op update;
        update.kind = step::Compute{step::OptimizerUpdate{}};
        update.in = {{0}};
        graph_.blocks = {{"optimizer", step::Phase::optimizer, {update}, 0}};
        graph_.classes = {{"all", {{{step::BlockId{0}, 0, 0}}}, 2, 0}};
        graph_.class_of_stage = {step::RankClassId{0}};
    }
    static MakeExecutor gives(std::vector<float> split, std::vector<float> unsplit) {
        return [=](world::World& world) {
            auto executor = std::make_unique<FakeExecutor>(world.rank());
            executor->values = world.size() > 1 ? split : unsplit;
            return executor;
        };
    }
    step::StepGraph graph_;
};

TEST_F(NumericCheckOfFakes, equal_gradients_pass_and_the_largest_difference_is_reported) {
    world::run_thread_world(2, [&](world::World& world) {
        const auto report = check_numeric(world, gives({1, 1.00001F}, {1, 1}), graph_, graph_);
        EXPECT_EQ(report.gradients, 1U);
        if (world.rank() == 0) {
            EXPECT_EQ(report.worst_gradient, "w.gradient");
            EXPECT_NEAR(report.worst_relative_l2, 1e-5 / std::sqrt(2.0), 1e-7);
        }
    });
}

TEST_F(NumericCheckOfFakes, a_wrong_gradient_is_refused_on_all_ranks_by_name) {
    std::atomic<int> refused = 0;
    world::run_thread_world(2, [&](world::World& world) {
        try {
            check_numeric(world, gives({1, 1.1F}, {1, 1}), graph_, graph_);
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("w.gradient"), std::string::npos);
            ++refused;
        }
    });
    EXPECT_EQ(refused, 2);
}

TEST_F(NumericCheckOfFakes, one_wrong_copy_is_refused) {
    std::atomic<int> refused = 0;
    world::run_thread_world(2, [&](world::World& world) {
        const MakeExecutor make = [](world::World& own) {
            auto executor = std::make_unique<FakeExecutor>(own.rank());
            executor->values = {1, own.rank() == 0 ? 1.0F : 2.0F};
            return executor;
        };
        try {
            check_numeric(world, make, graph_, graph_);
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("w.gradient"), std::string::npos);
            ++refused;
        }
    });
    EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace lockstep::drive
