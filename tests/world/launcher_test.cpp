#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/error.hpp"
#include "world/world.hpp"

namespace lockstep::world {
namespace {

// Starts from an environment without launcher variables and puts the old one back.
class LauncherTest : public testing::Test {
protected:
    LauncherTest() {
        for (const char* name : names) {
            if (const char* value = std::getenv(name)) before_[name] = value;
            unsetenv(name);
        }
    }
    ~LauncherTest() override {
        for (const char* name : names) unsetenv(name);
        for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
    }
    static void set(const char* name, const char* value) { setenv(name, value, 1); }

private:
    static constexpr const char* names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
                                            "SLURM_PROCID"};
    std::map<std::string, std::string> before_;
};

TEST_F(LauncherTest, without_variables_there_is_no_launcher) {
    EXPECT_EQ(detect_launcher().kind, Launcher::Kind::none);
    EXPECT_EQ(detect_launcher().expected_size, 1);
}

TEST_F(LauncherTest, mpirun_announces_the_size) {
    set("OMPI_COMM_WORLD_SIZE", "4");
    set("PMIX_RANK", "2");  // mpirun sets it too
    EXPECT_EQ(detect_launcher().kind, Launcher::Kind::mpi);
    EXPECT_EQ(detect_launcher().name, "mpirun");
    EXPECT_EQ(detect_launcher().expected_size, 4);
}

TEST_F(LauncherTest, srun_with_pmix_takes_the_size_of_the_step_not_of_the_allocation) {
    set("PMIX_RANK", "0");
    set("SLURM_NTASKS", "8");
    EXPECT_EQ(detect_launcher().expected_size, 8);
    set("SLURM_STEP_NUM_TASKS", "2");
    EXPECT_EQ(detect_launcher().name, "srun (pmix)");
    EXPECT_EQ(detect_launcher().expected_size, 2);
}

TEST_F(LauncherTest, a_step_of_several_tasks_without_pmix_is_a_usage_error_that_names_the_option) {
    set("SLURM_STEP_NUM_TASKS", "2");
    set("SLURM_PROCID", "1");
    try {
        detect_launcher();
        FAIL() << "accepted";
    } catch (const UsageError& error) { EXPECT_THAT(error.what(), testing::HasSubstr("srun --mpi=pmix")); }
}

TEST_F(LauncherTest, a_batch_script_is_a_step_of_one_task) {
    set("SLURM_STEP_NUM_TASKS", "1");
    set("SLURM_NTASKS", "8");
    set("SLURM_PROCID", "0");
    EXPECT_EQ(detect_launcher().kind, Launcher::Kind::none);
}

TEST_F(LauncherTest, a_size_that_is_no_number_is_refused) {
    for (const char* value : {"", "two", "0", "-1", "4x"}) {
        set("OMPI_COMM_WORLD_SIZE", value);
        EXPECT_THROW(detect_launcher(), UsageError) << value;
    }
}

TEST_F(LauncherTest, pmix_without_a_size_is_refused) {
    set("PMIX_RANK", "0");
    EXPECT_THROW(detect_launcher(), UsageError);
}

TEST(Allocator, large_blocks_can_be_kept) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer replaces the allocator that is set up";
#endif
    EXPECT_NO_THROW(keep_large_blocks());
}

}  // namespace
}  // namespace lockstep::world
