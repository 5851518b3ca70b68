// What becomes of operations when ranks die, give up or never come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/nccl_check.hpp"
#include "gpu/nccl_failure_harness.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(NcclFailure, a_call_that_fails_is_told_with_op_rank_code_text_last_error_and_place) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "ncclAllReduce:1:1,ncclAllReduce:2:1");
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const AllReduce op(rank);
        EXPECT_THAT(
            thrown([&] { op.enqueue(); }),
            MatchesRegex("bucket0.all_reduce \\(all_reduce, 4000 bytes\\) over dp \\(2 ranks\\) failed on rank " +
                         std::to_string(world.rank()) + " \\(host .*, GPU " + std::to_string(world.rank()) +
                         "\\): 1 ncclUnhandledCudaError \\(unhandled cuda error .*; NCCL's last error: ncclAllReduce "
                         "failed as LOCKSTEP_DOUBLE_FAIL wished\\) at communication.cpp:[0-9]+; .*"));
        world.barrier();  // before this rank aborts
    });
}

TEST(NcclFailure, an_error_inside_a_group_closes_the_group) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "ncclRecv:1,ncclRecv:2");
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const Buffer in(DType::fp32, 10), out(DType::fp32, 10);
        const step::Message next{{plan::Axis::dp, 1, true}, step::TensorId{0}, 0, 0};
        const step::P2PGroup group{step::CommunicatorId{0}, {next}, {next}};
        EXPECT_THAT(thrown([&] {
                        rank.run(group, {{in.operand()}, {{out.operand(), {}}}});
                    }),
                    HasSubstr("2 ncclSystemError"));
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // none is open
        world.barrier();
    });
}

TEST(NcclFailure, an_error_of_an_operation_in_flight_comes_out_later) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const AllReduce op(rank);
        op.enqueue();
        op.wait();
        world.barrier();
        if (world.rank() == 0) {
            const Variable fail("LOCKSTEP_DOUBLE_FAIL", "ncclCommGetAsyncError:1:6");
            EXPECT_THAT(thrown([&] { rank.communicator().throw_if_failed(); }),
                        AllOf(HasSubstr("communication over dp failed on rank 0"), HasSubstr("6 ncclRemoteError"),
                              HasSubstr("another rank died or gave up")));
        }
        world.barrier();
        abort_all(rank.communicators);
    });
}

TEST(NcclFailure, an_operation_that_hangs_ends_with_the_timeout) {
    const Variable hang("LOCKSTEP_DOUBLE_HANG", "ncclAllReduce:1");
    run_ranks(2, [](world::World& world) {
        const Rank rank(world, Seconds{0.5});
        const AllReduce op(rank);
        op.enqueue();
        EXPECT_THAT(thrown([&] { op.wait(); }),
                    AllOf(HasSubstr("bucket0.all_reduce"),
                          HasSubstr("not done within 0.5 s: its peers are rank " + std::to_string(1 - world.rank()))));
        world.barrier();
        abort_all(rank.communicators);
    });
}

// ---- aborts

TEST(NcclFailure, an_abort_from_another_thread_ends_what_waits) {
    const Variable quiet("LOCKSTEP_DOUBLE_NCCL_QUIET", "1");
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const AllReduce op(rank);
        std::string error;
        if (world.rank() == 0) {
            op.enqueue();  // nobody else comes
            std::thread watchdog([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                abort_all(rank.communicators);
            });
            const double seconds = seconds_of([&] { error = thrown([&] { op.wait(); }); });
            watchdog.join();
            EXPECT_LT(seconds, 5);
            EXPECT_THAT(error, HasSubstr("communicator dp was aborted"));
            EXPECT_TRUE(rank.communicator().is_aborted());
            EXPECT_EQ(cudaStreamSynchronize(rank.stream.get()), cudaSuccess);
            EXPECT_THAT(thrown([&] { op.enqueue(); }), HasSubstr("was aborted"));
            EXPECT_THAT(thrown([&] { rank.communicator().throw_if_failed(); }), HasSubstr("was aborted"));
            rank.communicator().abort();  // once is enough
        }
        world.barrier();
        if (world.rank() == 1) rank.communicator().abort();
    });
}

TEST(NcclFailure, a_rank_that_aborts_is_seen_by_its_peers) {
    run_ranks(4, [](world::World& world) {
        const Rank rank(world);
        const AllReduce op(rank);
        if (world.rank() != 2) op.enqueue();
        world.barrier();
        if (world.rank() == 2) {
            rank.communicator().abort();
        } else {
            EXPECT_THAT(error_within(rank.communicator(), 5), HasSubstr("rank 2 has aborted the communicator"));
            EXPECT_EQ(cudaStreamQuery(rank.stream.get()), cudaErrorNotReady);  // stuck, until this rank gives up too
        }
        world.barrier();
        abort_all(rank.communicators);
    });
}

TEST(NcclFailure, a_process_that_dies_is_seen_within_a_second) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "2");
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::vector<std::string> members{"rank 0 (host a, GPU 0)", "rank 1 (host a, GPU 1)"};
    const pid_t child = fork();
    if (child == 0) {
        cudaSetDevice(1);
        const NcclCommunicator communicator({"dp", 1, members, id}, Seconds{10});
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the other rank's operation waits by then
        raise(SIGKILL);
    }
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
    NcclCommunicator communicator({"dp", 0, members, id}, Seconds{10});
    const Stream stream = make_stream();
    const Buffer data(DType::fp32, 10);
    communicator.issue("an all-reduce", [&](ncclComm_t comm) {
        return ncclAllReduce(data.at(0), data.at(0), 10, ncclFloat32, ncclSum, comm, stream.get());
    });
    std::string error;
    const double seconds = seconds_of([&] { error = error_within(communicator, 5); });
    EXPECT_THAT(error, AllOf(HasSubstr("6 ncclRemoteError (remote process exited or there was a network error; NCCL's "
                                       "last error: rank 1 has died)"),
                             HasSubstr("another rank died or gave up")));
    EXPECT_LT(seconds, 2);  // 0.2 on an idle machine
    communicator.abort();
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);  // a zombie until here
}

TEST(NcclFailure, a_rank_that_does_not_finalize_is_waited_for_until_the_timeout) {
    run_ranks(2, [](world::World& world) {
        auto communicator = std::make_unique<NcclCommunicator>(meet(world, "dp", describe_rank(world)), Seconds{0.3});
        if (world.rank() == 0) {
            const double seconds = seconds_of([&] { communicator.reset(); });
            EXPECT_GT(seconds, 0.25);
            EXPECT_LT(seconds, 2);
        }
        world.barrier();
        if (communicator) communicator->abort();
    });
}

}  // namespace
}  // namespace lockstep::gpu::testing
