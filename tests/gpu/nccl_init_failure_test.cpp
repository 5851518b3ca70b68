// What becomes of communicators that can't be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "gpu/nccl_check.hpp"
#include "gpu/nccl_failure_harness.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::HasSubstr;

TEST(NcclFailure, a_rank_that_never_comes_is_named_when_the_timeout_has_passed) {
    const Variable hang("LOCKSTEP_DOUBLE_HANG", "ncclCommInitRankConfig:3"), quiet("LOCKSTEP_DOUBLE_NCCL_QUIET", "1");
    run_ranks(3, [](world::World& world) {
        std::string error;
        const double seconds = seconds_of([&] { error = thrown([&] { Rank(world, Seconds{0.5}); }); });
        EXPECT_THAT(error, HasSubstr("communicator dp could not be made: rank " + std::to_string(world.rank())));
        EXPECT_THAT(error, HasSubstr("waited 0.5 s for rank "));
        EXPECT_THAT(error,
                    HasSubstr("(host " + world.host() + ", GPU " + std::to_string((world.rank() + 1) % 3) + ")"));
        EXPECT_THAT(error, HasSubstr("7 ncclInProgress"));
        EXPECT_THAT(error, HasSubstr("nccl_communicator.cpp:"));
        EXPECT_LT(seconds, 2);
    });
}

TEST(NcclFailure, a_check_waits_for_what_is_in_progress) {
    run_ranks(2, [](world::World& world) {
        const NcclMeeting meeting = meet(world, "dp", describe_rank(world));
        if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclComm_t comm = nullptr;
        const ncclResult_t result = ncclCommInitRankConfig(&comm, 2, meeting.id, world.rank(), &config);
        EXPECT_EQ(result, ncclInProgress);
        check_nccl(result, "ncclCommInitRankConfig", comm);
        int count = 0;
        check_nccl(ncclCommCount(comm, &count), "ncclCommCount", comm);
        EXPECT_EQ(count, 2);
        EXPECT_THAT(thrown([&] { check_nccl(ncclInvalidArgument, "ncclSend", comm); }),
                    HasSubstr("ncclSend failed: 4 ncclInvalidArgument (invalid argument"));
        check_nccl(ncclCommFinalize(comm), "ncclCommFinalize", comm);
        check_nccl(ncclCommDestroy(comm), "ncclCommDestroy");
    });
}

TEST(NcclFailure, two_ranks_on_one_gpu_are_refused_by_nccl) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "1");
    world::run_thread_world(2, [](world::World& world) {
        const std::string error = thrown([&] { Rank(world, Seconds{10}); });
        EXPECT_THAT(error, HasSubstr("ncclCommInitRankConfig for communicator dp failed on rank"));
        EXPECT_THAT(error, HasSubstr("5 ncclInvalidUsage (invalid usage"));
        EXPECT_THAT(error, HasSubstr("NCCL's last error: Duplicate GPU detected : rank"));
        EXPECT_THAT(error, HasSubstr("each rank needs a GPU of its own"));
    });
}

TEST(NcclFailure, a_failing_unique_id_fails_on_all_ranks) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "ncclGetUniqueId:1");
    run_ranks(2, [](world::World& world) {
        const std::string error = thrown([&] { Rank rank(world); });
        EXPECT_THAT(error, HasSubstr("ncclGetUniqueId failed: 2 ncclSystemError (unhandled system error"));
    });
}

TEST(NcclFailure, init_that_fails_on_one_rank_ends_on_all) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "ncclCommInitRankConfig:1:3");
    std::atomic<int> internal = 0, late = 0;
    run_ranks(2, [&](world::World& world) {
        const std::string error = thrown([&] { Rank(world, Seconds{0.5}); });
        if (error.find("3 ncclInternalError") != std::string::npos) ++internal;
        if (error.find("waited 0.5 s for rank") != std::string::npos) ++late;
    });
    EXPECT_EQ(internal, 1);
    EXPECT_EQ(late, 1);
}

TEST(NcclFailure, an_abort_during_init_ends_it_on_its_peers) {
    run_ranks(3, [](world::World& world) {
        const NcclMeeting meeting = meet(world, "dp", describe_rank(world));
        if (world.rank() == 1) {
            EXPECT_THAT(thrown([&] { NcclCommunicator(meeting, Seconds{10}); }),
                        HasSubstr("rank 0 has aborted the communicator"));
        }
        if (world.rank() != 0) return;
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclComm_t comm = nullptr;
        EXPECT_EQ(ncclCommInitRankConfig(&comm, 3, meeting.id, 0, &config), ncclInProgress);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
}

}  // namespace
}  // namespace lockstep::gpu::testing
