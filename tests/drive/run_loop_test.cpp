#include "drive/run_loop.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "drive/fake_executor.hpp"
#include "record/run_reader.hpp"

namespace lockstep::drive {
namespace {

namespace fs = std::filesystem;

/// A folder of its own that goes with the test.
class RunLoop : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("lockstep-run-loop-" + std::to_string(getpid()) + "-" +
                                               testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::create_directories(folder_);
        graph_.streams.push_back({.name = "compute"});
        graph_.classes.push_back({.name = "all"});
        graph_.class_of_stage.push_back({0});
    }
    void TearDown() override { fs::remove_all(folder_); }

    record::LiveWriter writer(int rank, int ranks, std::int64_t steps) {
        record::RunDescription run;
        run.ranks = ranks;
        run.planned_steps = static_cast<int>(steps);
        record::RankDescription description;
        description.rank = rank;
        return {record::rank_file(folder_, rank), run, description, graph_};
    }

    fs::path folder_;
    step::StepGraph graph_;
};

TEST_F(RunLoop, writes_every_step_of_every_rank_and_reports_complete) {
    world::run_thread_world(3, [&](world::World& world) {
        FakeExecutor executor(world.rank());
        auto file = writer(world.rank(), world.size(), 7);
        const LoopOutcome outcome = run_loop(world, executor, file, nullptr, {.steps = 7});
        EXPECT_EQ(outcome.status, record::Status::complete);
        EXPECT_EQ(outcome.steps, 7);
        EXPECT_EQ(executor.enqueued(), 7);
        file.close();
    });
    const record::RunReader reader(folder_);
    EXPECT_EQ(reader.steps(), 7);
    EXPECT_EQ(reader.status(), record::Status::complete);
    std::int64_t records = 0;
    reader.for_each(0, 7, [&](const step::StepRecord& record) {
        EXPECT_EQ(record.end.count, record.step * 1000 + 900);
        ++records;
    });
    EXPECT_EQ(records, 21);
}

TEST_F(RunLoop, usr1_on_one_process_stops_all_ranks_after_the_same_step) {
    StopSignals signals;
    std::mutex mutex;
    std::vector<std::int64_t> steps;
    world::run_thread_world(2, [&](world::World& world) {
        FakeExecutor executor(world.rank());
        auto file = writer(world.rank(), world.size(), 100000);
        LoopOptions options{.steps = 100000};
        options.on_step = [&](const step::StepRecord& record) {
            if (record.step == 5) kill(getpid(), SIGUSR1);
        };
        const LoopOutcome outcome = run_loop(world, executor, file, &signals, options);
        EXPECT_EQ(outcome.status, record::Status::interrupted);
        EXPECT_EQ(outcome.stopped_by, StopRequest::graceful);
        EXPECT_EQ(executor.enqueued(), outcome.steps);
        file.close();
        const std::lock_guard lock(mutex);
        steps.push_back(outcome.steps);
    });
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0], steps[1]);
    EXPECT_GT(steps[0], 5);
    EXPECT_LT(steps[0], 100000);
}

TEST_F(RunLoop, a_failing_executor_of_a_single_rank_throws_its_own_error) {
    const auto world = world::make_self_world();
    FakeExecutor executor(0);
    executor.fails_at = 3;
    auto file = writer(0, 1, 10);
    try {
        run_loop(*world, executor, file, nullptr, {.steps = 10});
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("fell off the bus"), std::string::npos);
        EXPECT_EQ(error.code(), ExitCode::runtime_failure);
    }
    EXPECT_EQ(file.steps_written(), 3);
}

TEST_F(RunLoop, on_step_is_called_on_rank_0_only_and_in_order) {
    std::vector<std::int64_t> seen;
    world::run_thread_world(2, [&](world::World& world) {
        FakeExecutor executor(world.rank());
        auto file = writer(world.rank(), world.size(), 4);
        LoopOptions options{.steps = 4};
        options.on_step = [&](const step::StepRecord& record) {
            EXPECT_EQ(record.rank, 0);
            seen.push_back(record.step);
        };
        run_loop(world, executor, file, nullptr, options);
    });
    EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace lockstep::drive
