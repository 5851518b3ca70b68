// Folders of runs, disks that are full, and what is noted of the surroundings.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <regex>

#include "record/live_writer.hpp"
#include "record/run_description.hpp"
#include "record/run_file.hpp"
#include "record/run_reader.hpp"
#include "record/sample_run.hpp"

namespace lockstep::record::test {
namespace {

namespace fs = std::filesystem;

/// A file system of its own for one folder, gone at the end. `is_there` is false where it may not be mounted.
class Mounted {
public:
    Mounted(fs::path folder, const std::string& options, unsigned long flags = 0) : folder_(std::move(folder)) {
        fs::create_directories(folder_);
        is_there = mount("tmpfs", folder_.c_str(), "tmpfs", flags, options.c_str()) == 0;
        reason = std::strerror(errno);
    }
    ~Mounted() {
        if (is_there) umount2(folder_.c_str(), MNT_DETACH);
    }
    Mounted(const Mounted&) = delete;
    Mounted& operator=(const Mounted&) = delete;
    bool is_there = false;
    std::string reason;

private:
    fs::path folder_;
};

TEST(RunFolder, is_made_with_its_parents_and_may_exist_empty) {
    const TemporaryFolder folder;
    make_run_folder(folder / "a/b/c");
    EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
    EXPECT_TRUE(fs::is_empty(folder / "a/b/c"));
    make_run_folder(folder / "a/b/c");
}

TEST(RunFolder, that_is_not_empty_is_refused) {
    const TemporaryFolder folder;
    fs::create_directories(folder / "a/b");
    const std::string refusal = input_error([&] { make_run_folder(folder / "a"); });
    EXPECT_NE(refusal.find("not empty"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("--out"), std::string::npos) << refusal;
}

TEST(RunFolder, that_is_a_file_or_below_a_file_is_refused) {
    const TemporaryFolder folder;
    write_bytes(folder / "file", {'x'});
    EXPECT_NE(input_error([&] { make_run_folder(folder / "file"); }).find("a file of this name"), std::string::npos);
    EXPECT_NE(input_error([&] { make_run_folder(folder / "file" / "run"); }).find("can't make"), std::string::npos);
}

TEST(RunFolder, that_cannot_be_written_is_refused) {
    const TemporaryFolder folder;
    const fs::path parent = folder / "locked";
    fs::create_directories(parent);
    if (geteuid() == 0) {
        // Root may write anywhere but to a disk that is mounted read-only.
        const Mounted disk(parent, "size=64k", MS_RDONLY);
        if (!disk.is_there) GTEST_SKIP() << "root, and no read-only disk can be mounted (" << disk.reason << ")";
        EXPECT_NE(input_error([&] { make_run_folder(parent); }).find("can't be written"), std::string::npos);
        EXPECT_NE(input_error([&] { make_run_folder(parent / "run"); }).find("Read-only"), std::string::npos);
        return;
    }
    fs::permissions(parent, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_NE(input_error([&] { make_run_folder(parent); }).find("can't be written"), std::string::npos);
    EXPECT_NE(input_error([&] { make_run_folder(parent / "run"); }).find("Permission denied"), std::string::npos);
    fs::permissions(parent, fs::perms::owner_all);
}

TEST(RunFolder, a_folder_that_is_gone_is_an_error_of_the_writer) {
    const TemporaryFolder folder;
    EXPECT_THROW(LiveWriter(folder / "gone" / "rank-00000.h5", full_description(1), full_rank(0), every_op_kind()),
                 RuntimeError);
}

TEST(RunFolder, a_full_disk_is_an_error_and_keeps_the_finished_steps) {
    const TemporaryFolder folder;
    const Mounted disk(folder / "disk", "size=2m");
    if (!disk.is_there) GTEST_SKIP() << "no small disk can be mounted (" << disk.reason << "; needs root)";
    const auto graph = every_op_kind();
    const fs::path run_folder = folder / "disk" / "run";
    make_run_folder(run_folder);
    int written = 0;
    std::string error;
    {
        LiveWriter writer(rank_file(run_folder, 0), full_description(1), full_rank(0), graph);
        try {
            for (; written < 1000; ++written) writer.append(make_step(graph, 0, written, 300));
        } catch (const RuntimeError& failure) { error = failure.what(); }
        EXPECT_GT(written, 20);
        EXPECT_NE(error.find("rank-00000.h5"), std::string::npos) << error;
        EXPECT_NE(error.find("free some space"), std::string::npos) << error;
        EXPECT_EQ(writer.steps_written(), written);
    }
    const RunReader run(run_folder);
    ASSERT_EQ(run.steps(), written);
    for (const auto& record : read_all(run)) EXPECT_TRUE(same(record, make_step(graph, 0, record.step, 300)));
    repair_run(run_folder, folder / "repaired");
    EXPECT_EQ(RunReader(folder / "repaired").steps(), written);
}

TEST(RunFolder, a_merge_on_a_full_disk_keeps_the_rank_files) {
    const TemporaryFolder folder;
    const Mounted disk(folder / "disk", "size=2m");
    if (!disk.is_there) GTEST_SKIP() << "no small disk can be mounted (" << disk.reason << "; needs root)";
    const auto graph = every_op_kind();
    const fs::path run_folder = folder / "disk" / "run";
    write_run(run_folder, graph, {20}, Status::complete, 300);
    const auto before = read_all(RunReader(run_folder));
    const auto space = fs::space(folder / "disk").available;
    write_bytes(folder / "disk" / "filler", std::vector<char>(space, 'x'));
    EXPECT_THROW(merge_run(run_folder), RuntimeError);
    EXPECT_FALSE(fs::exists(run_folder / "run.h5.unfinished"));
    const auto after = read_all(RunReader(run_folder));
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same(after[i], before[i]));
    fs::remove(folder / "disk" / "filler");
    merge_run(run_folder);
    EXPECT_EQ(read_all(RunReader(run_folder)).size(), before.size());
}

TEST(RunFolder, its_default_name_holds_experiment_ranks_time_and_job) {
    setenv("SLURM_JOB_ID", "4711", 1);
    const std::string name = default_run_folder("../my exp/x", 8).string();
    unsetenv("SLURM_JOB_ID");
    EXPECT_TRUE(std::regex_match(name, std::regex(R"(runs/\.\.-my-exp-x-8r-\d{8}T\d{6}Z-4711)"))) << name;
    EXPECT_TRUE(std::regex_match(default_run_folder("tiny", 1).string(), std::regex(R"(runs/tiny-1r-\d{8}T\d{6}Z)")));
    EXPECT_EQ(rank_file("runs/x", 42), "runs/x/rank-00042.h5");
}

TEST(Description, sha256_of_the_published_vector) {
    // FIPS 180-2, appendix B.1 and B.2.
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Description, only_variables_of_launchers_are_recorded_and_no_credential) {
    setenv("NCCL_ALGO", "Ring=1", 1);
    setenv("SLURM_JWT", "secret", 1);
    setenv("SLURM_JOB_ID", "9", 1);
    setenv("MY_PASSWORD", "secret", 1);
    const auto recorded = recorded_environment();
    for (const char* name : {"NCCL_ALGO", "SLURM_JWT", "SLURM_JOB_ID", "MY_PASSWORD"}) unsetenv(name);
    EXPECT_EQ(recorded.at("env.NCCL_ALGO"), "Ring=1");
    EXPECT_EQ(recorded.at("env.SLURM_JOB_ID"), "9");
    for (const auto& [name, value] : recorded) EXPECT_NE(value, "secret") << name;
}

}  // namespace
}  // namespace lockstep::record::test
