// What the double of NCCL must notice: uses of it that the real one answers with a hang or wrong numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "gpu/nccl_failure_harness.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::HasSubstr;

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

void abort_one_by_one(world::World& world) {
    const Rank first(world), second(world);
    if (world.rank() == 0) {
        const AllReduce a(first), b(second);
        a.enqueue();
        b.enqueue();
        first.communicator().abort();  // abort_all is the right way
        second.communicator().abort();
    }
    world.barrier();
    first.communicator().abort();
    second.communicator().abort();
}

TEST(NcclMisuseDeathTest, an_abort_while_another_communicator_keeps_the_device_is_reported) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const Variable quiet("LOCKSTEP_DOUBLE_NCCL_QUIET", "1");
    EXPECT_EXIT(in_ranks_of_a_child(2, abort_one_by_one), ::testing::ExitedWithCode(97),
                "stays on device 0: abort both in one group");
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

TEST(NcclMisuse, operations_of_one_communicator_on_two_streams_stay_in_order) {
    run_ranks(2, [](world::World& world) {
        const Rank rank(world), other(world);
        const Stream second = make_stream();
        const AllReduce before(other);
        const Buffer one(DType::fp32, Values(10, 1.0F)), two(DType::fp32, Values(10, 2.0F));
        const auto sum = [&](const Buffer& data, cudaStream_t stream) {
            rank.communicator().issue("an all-reduce", [&](ncclComm_t comm) {
                return ncclAllReduce(data.at(0), data.at(0), 10, ncclFloat32, ncclSum, comm, stream);
            });
        };
        // The first stream of rank 0 is kept busy, its second one is free.
        if (world.rank() == 0) before.bound.enqueue(rank.stream.get());
        sum(one, rank.stream.get());
        sum(two, second.get());
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (world.rank() == 1) before.bound.enqueue(other.stream.get());
        for (const cudaStream_t stream : {rank.stream.get(), second.get(), other.stream.get()})
            rank.communicator().synchronize(stream, "an all-reduce");
        EXPECT_EQ(one.read(), Values(10, 2.0F));
        EXPECT_EQ(two.read(), Values(10, 4.0F));
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
