// What becomes of communication when ranks don't come, die, give up or disagree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "gpu/nccl_check.hpp"
#include "gpu/nccl_harness.hpp"
#include "world/agree.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Kind = step::CollectiveKind;

template <class F>
std::string thrown(F&& f) {
    try {
        f();
    } catch (const RuntimeError& error) { return error.what(); }
    return "nothing was thrown";
}

double seconds_of(const std::function<void()>& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

step::Collective all_reduce_of(std::int64_t count) {
    return {Kind::all_reduce, step::CommunicatorId{0}, step::Reduction::sum, count, DType::fp32};
}

/// An all-reduce of a rank's own buffer.
struct AllReduce {
    explicit AllReduce(const Rank& r, std::int64_t count = 1000)
        : rank(r),
          data(DType::fp32, Values(static_cast<std::size_t>(count), 1.0F)),
          bound(r.graph, r.world.rank(), r.op(all_reduce_of(count), "bucket0.all_reduce"),
                {{data.operand()}, {{data.operand(), {}}}}, r.communicator()) {}
    ~AllReduce() { cudaStreamSynchronize(rank.stream.get()); }  // what is aborted leaves the stream
    void enqueue() const { bound.enqueue(rank.stream.get()); }
    void wait() const { rank.communicator().synchronize(rank.stream.get(), bound.description()); }

    const Rank& rank;
    Buffer data;
    Communication bound;
};

/// Waits for an error that comes by itself.
std::string error_within(NcclCommunicator& communicator, double seconds) {
    std::string error;
    for (double waited = 0; waited < seconds; waited += 0.001) {
        error = thrown([&] { communicator.throw_if_failed(); });
        if (error != "nothing was thrown") break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return error;
}

// ---- making communicators

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

// ---- operations that fail

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
        if (world.rank() != 0) return world.barrier();
        {
            const Variable fail("LOCKSTEP_DOUBLE_FAIL", "ncclCommGetAsyncError:1:6");
            EXPECT_THAT(thrown([&] { rank.communicator().throw_if_failed(); }),
                        AllOf(HasSubstr("communication over dp failed on rank 0"), HasSubstr("6 ncclRemoteError"),
                              HasSubstr("another rank died or gave up")));
        }
        world.barrier();
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

TEST(NcclFailure, a_rank_that_aborts_is_seen_by_its_peers) {
    run_ranks(4, [](world::World& world) {
        const Rank rank(world);
        const AllReduce op(rank);
        if (world.rank() != 2) op.enqueue();
        world.barrier();
        if (world.rank() == 2) {
            rank.communicator().abort();
            return;
        }
        EXPECT_THAT(error_within(rank.communicator(), 5), HasSubstr("rank 2 has aborted the communicator"));
        EXPECT_EQ(cudaStreamQuery(rank.stream.get()), cudaErrorNotReady);  // stuck, until this rank gives up too
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
    EXPECT_LT(seconds, 1);
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

// ---- what the double itself must notice

/// Body of a child process, which the double ends.
template <class F>
void in_ranks_of_a_child(int ranks, F body) {
    run_ranks(ranks, body);
    std::exit(0);
}

using NcclMisuse = ::testing::Test;

TEST(NcclMisuseDeathTest, collectives_that_differ_between_ranks_end_the_process) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(in_ranks_of_a_child(2,
                                     [](world::World& world) {
                                         const Rank rank(world);
                                         const AllReduce op(rank, world.rank() == 0 ? 1000 : 999);
                                         op.enqueue();
                                         op.wait();
                                     }),
                 "collective 1 of a communicator is all-reduce of (1000|999) fp32 \\(sum\\) on rank [01] and "
                 "all-reduce of (1000|999) fp32 \\(sum\\) on rank [01]: they must be equal");
}

TEST(NcclMisuseDeathTest, a_message_that_is_received_with_another_count_ends_the_process) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(in_ranks_of_a_child(2,
                                     [](world::World& world) {
                                         const Rank rank(world);
                                         const Buffer data(DType::fp32, 10);
                                         const bool sends = world.rank() == 0;
                                         rank.communicator().issue("a message", [&](ncclComm_t comm) {
                                             if (sends)
                                                 return ncclSend(data.at(0), 10, ncclFloat32, 1, comm,
                                                                 rank.stream.get());
                                             return ncclRecv(data.at(0), 9, ncclFloat32, 0, comm, rank.stream.get());
                                         });
                                         rank.communicator().synchronize(rank.stream.get(), "a message");
                                     }),
                 "message 1 from rank 0 to rank 1: 10 fp32 are sent and 9 fp32 received");
}

TEST(NcclMisuseDeathTest, a_communicator_that_is_left_behind_is_reported_at_exit) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(in_ranks_of_a_child(2,
                                    [](world::World& world) {
                                        const NcclMeeting meeting = meet(world, "dp", describe_rank(world));
                                        (void)std::make_unique<NcclCommunicator>(meeting, Seconds{10}).release();
                                    }),
                ::testing::ExitedWithCode(97), "NCCL communicator, rank 0 of 2 was neither destroyed nor aborted");
}

TEST(NcclMisuse, a_communicator_used_before_its_operation_is_issued_is_refused) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const Buffer data(DType::fp32, 10);
        const ncclComm_t comm = rank.communicator().comm();
        const auto reduce = [&] {
            return ncclAllReduce(data.at(0), data.at(0), 10, ncclFloat32, ncclSum, comm, rank.stream.get());
        };
        EXPECT_EQ(reduce(), ncclInProgress);
        EXPECT_EQ(reduce(), ncclInvalidArgument);
        EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("before the previous operation returned ncclSuccess"));
        EXPECT_EQ(cudaStreamQuery(rank.stream.get()), cudaSuccess);  // not on its stream yet
        rank.communicator().throw_if_failed();
        rank.communicator().throw_if_failed();
        rank.communicator().synchronize(rank.stream.get(), "an all-reduce");
    });
}

TEST(NcclMisuse, a_send_waits_for_its_receive_however_small) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world);
        const Buffer data(DType::fp32, 1);
        if (world.rank() == 0) {
            rank.communicator().issue("a message", [&](ncclComm_t comm) {
                return ncclSend(data.at(0), 1, ncclFloat32, 1, comm, rank.stream.get());
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            EXPECT_EQ(cudaStreamQuery(rank.stream.get()), cudaErrorNotReady);
        }
        world.barrier();
        if (world.rank() == 1)
            rank.communicator().issue("a message", [&](ncclComm_t comm) {
                return ncclRecv(data.at(0), 1, ncclFloat32, 0, comm, rank.stream.get());
            });
        rank.communicator().synchronize(rank.stream.get(), "a message");
    });
}

/// Two communicators in opposite orders on two ranks, each on its stream. True when all came through.
bool crosses(double timeout) {
    std::atomic<int> stuck = 0;
    run_ranks(2, [&](world::World& world) {
        const NcclMeeting first = meet(world, "first", describe_rank(world));
        const NcclMeeting second = meet(world, "second", describe_rank(world));
        std::vector<std::unique_ptr<NcclCommunicator>> both;
        both.push_back(std::make_unique<NcclCommunicator>(first, Seconds{timeout}));
        both.push_back(std::make_unique<NcclCommunicator>(second, Seconds{timeout}));
        const Stream streams[] = {make_stream(), make_stream()};
        const Buffer data[] = {Buffer(DType::fp32, 10), Buffer(DType::fp32, 10)};
        for (const int turn : {0, 1}) {
            const auto i = static_cast<std::size_t>(world.rank() == 0 ? turn : 1 - turn);
            both[i]->issue("an all-reduce", [&](ncclComm_t comm) {
                return ncclAllReduce(data[i].at(0), data[i].at(0), 10, ncclFloat32, ncclSum, comm, streams[i].get());
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it has reached the device
        }
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
            if (thrown([&] { both[i]->synchronize(streams[i].get(), "an all-reduce"); }) != "nothing was thrown")
                ++stuck;
        world.barrier();
        if (stuck > 0) abort_all(both);
        for (const Stream& stream : streams) cudaStreamSynchronize(stream.get());
    });
    return stuck == 0;
}

TEST(NcclMisuse, opposite_orders_of_two_communicators_hang_where_one_kernel_is_resident_at_a_time) {
    EXPECT_TRUE(crosses(10));
    const Variable resident("LOCKSTEP_DOUBLE_NCCL_RESIDENT", "1");
    EXPECT_FALSE(crosses(0.5));
}

}  // namespace
}  // namespace lockstep::gpu::testing
