// kill -9 at random moments loses no finished step, whether a run is being written, merged or repaired.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "record/live_writer.hpp"
#include "record/run_file.hpp"
#include "record/run_reader.hpp"
#include "record/sample_run.hpp"

namespace lockstep::record::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

constexpr int events = 300;

/// The program in writer_program.cpp, its output in a pipe.
class Child {
public:
    Child(const std::string& task, const std::string& folder) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) throw RuntimeError("no pipe can be made");
        pid_ = fork();
        if (pid_ == 0) {
            dup2(ends[1], STDOUT_FILENO);
            execl(LOCKSTEP_CRASH_WRITER, LOCKSTEP_CRASH_WRITER, task.c_str(), folder.c_str(), nullptr);
            _exit(127);
        }
        close(ends[1]);
        output_ = ends[0];
    }
    ~Child() {
        if (pid_ > 0) kill_and_drain();
        close(output_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Waits until the child has printed so many lines, or ended.
    void wait_for_lines(int lines) {
        while (lines_ < lines && read_some()) {}
    }
    /// Kills it and returns the lines it printed before: each a step that append had returned from.
    int kill_and_drain() {
        kill(pid_, SIGKILL);
        while (read_some()) {}
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return lines_;
    }
    int status = 0;  ///< of waitpid

private:
    bool read_some() {
        char buffer[4096];
        const ssize_t got = read(output_, buffer, sizeof buffer);
        for (ssize_t i = 0; i < got; ++i) lines_ += buffer[i] == '\n' ? 1 : 0;
        return got > 0;
    }
    pid_t pid_ = -1;
    int output_ = -1;
    int lines_ = 0;
};

class Kill : public testing::Test {
protected:
    Kill() : seed_(std::random_device()()), random_(seed_) {
        std::printf("seed %u\n", seed_);
        std::fflush(stdout);
    }
    void sleep_up_to(microseconds longest) {
        std::this_thread::sleep_for(
            microseconds(std::uniform_int_distribution<std::int64_t>(0, longest.count())(random_)));
    }
    unsigned seed_;
    std::mt19937 random_;
};

void expect_steps(const RunReader& run, std::int64_t least) {
    static const auto graph = every_op_kind();
    EXPECT_GE(run.steps(), least);
    std::int64_t next = 0;
    run.for_each(0, run.steps(), [&](const step::StepRecord& record) {
        EXPECT_TRUE(same(record, make_step(graph, 0, next, events))) << "step " << next;
        ++next;
    });
    EXPECT_EQ(next, run.steps());
}

TEST_F(Kill, of_a_writer_loses_no_step_that_it_had_finished) {
    for (int trial = 0; trial < 25; ++trial) {
        const TemporaryFolder folder;
        const fs::path run_folder = folder / "run";
        int finished = 0;
        {
            Child writer("append", run_folder);
            writer.wait_for_lines(1 + trial * 20);
            const RunReader living(run_folder);
            EXPECT_TRUE(living.is_alive());
            EXPECT_EQ(living.status(), Status::running);
            expect_steps(living, 1 + trial * 20);
            sleep_up_to(microseconds(20'000));
            finished = writer.kill_and_drain();
            ASSERT_TRUE(WIFSIGNALED(writer.status));
        }
        const RunReader killed(run_folder);
        EXPECT_FALSE(killed.is_alive());
        ASSERT_EQ(killed.remarks().size(), 1U);
        EXPECT_NE(killed.remarks()[0].find("killed"), std::string::npos) << killed.remarks()[0];
        expect_steps(killed, finished);
        EXPECT_LE(killed.steps(), finished + 1) << "at most the step whose number was not printed yet";
        const auto report = repair_run(run_folder, folder / "repaired");
        EXPECT_EQ(report.steps, killed.steps());
        expect_steps(RunReader(folder / "repaired"), finished);
    }
}

TEST_F(Kill, of_a_merge_leaves_the_rank_file_or_the_merged_one_whole) {
    const auto graph = every_op_kind();
    constexpr int steps = 400;
    int unmerged = 0;
    for (int trial = 0; trial < 12; ++trial) {
        const TemporaryFolder folder;
        write_run(folder / "run", graph, {steps}, Status::complete, events);
        Child merge("merge", folder / "run");
        merge.wait_for_lines(1);
        sleep_up_to(microseconds(trial < 6 ? 30'000 : 300'000));
        merge.kill_and_drain();
        unmerged += RunReader(folder / "run").is_merged() ? 0 : 1;
        const RunReader run(folder / "run");
        EXPECT_EQ(run.steps(), steps);
        expect_steps(run, steps);
        merge_run(folder / "run");
        const RunReader merged(folder / "run");
        EXPECT_TRUE(merged.is_merged());
        expect_steps(merged, steps);
        EXPECT_FALSE(fs::exists(folder / "run" / "run.h5.unfinished"));
    }
    std::printf("%d of 12 merges were killed before they ended\n", unmerged);
}

TEST_F(Kill, of_a_repair_leaves_what_it_reads_as_it_was) {
    const auto graph = every_op_kind();
    constexpr int steps = 300;
    for (int trial = 0; trial < 8; ++trial) {
        const TemporaryFolder folder;
        write_run(folder / "run", graph, {steps}, Status::running, events);
        const auto before = read_bytes(rank_file(folder / "run", 0));
        Child repair("repair", folder / "run");
        repair.wait_for_lines(1);
        sleep_up_to(microseconds(100'000));
        repair.kill_and_drain();
        EXPECT_EQ(read_bytes(rank_file(folder / "run", 0)), before);
        expect_steps(RunReader(folder / "run"), steps);
        repair_run(folder / "run", folder / "second try");
        expect_steps(RunReader(folder / "second try"), steps);
    }
}

}  // namespace
}  // namespace lockstep::record::test
