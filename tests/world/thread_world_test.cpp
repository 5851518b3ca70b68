// What ranks as threads promise beyond the contract: failures reach every rank, mistakes are named, sums are in rank
// order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "base/error.hpp"
#include "world/forms.hpp"

namespace lockstep::world {
namespace {

using testing::HasSubstr;

template <class F>
std::string message_of(F f) {
    try {
        f();
    } catch (const std::exception& error) { return error.what(); }
    return "nothing was thrown";
}

// Rank 1 throws at once; every other rank blocks in `wait_for_it` and must be told.
void expect_failure_reaches_others(const RankBody& wait_for_it) {
    std::atomic<int> told = 0;
    const auto body = [&](World& w) {
        if (w.rank() == 1) throw InputError("spoiled");
        try {
            wait_for_it(w);
        } catch (const RuntimeError& error) {
            ++told;
            EXPECT_THAT(error.what(), HasSubstr("spoiled"));
            throw;
        }
    };
    EXPECT_THROW(run_thread_world(3, body), InputError) << "the cause, not what it led to in rank 0";
    EXPECT_EQ(told, 2);
}

TEST(ThreadWorld, a_throwing_rank_releases_those_in_a_barrier) {
    expect_failure_reaches_others([](World& w) { w.barrier(); });
}

TEST(ThreadWorld, a_throwing_rank_releases_those_that_wait_for_a_message) {
    expect_failure_reaches_others([](World& w) {
        std::array<std::byte, 4> room{};
        const Receive in{room, 1, 0};
        w.exchange({}, {&in, 1});
    });
}

TEST(ThreadWorld, a_throwing_rank_releases_those_that_poll) {
    expect_failure_reaches_others([](World& w) {
        std::vector<float> data(10);
        const auto request = w.start_all_reduce(bytes_of(data), Number::f32, Reduce::sum);
        while (!request->test()) {}
    });
}

TEST(ThreadWorld, a_throwing_rank_releases_worlds_split_before) {
    const auto body = [](World& w) {
        const auto part = w.split(w.rank() / 2, 0);  // 0 and 1, 2 and 3
        if (w.rank() == 3) throw InputError("spoiled");
        if (part->size() == 2 && w.rank() == 2) part->barrier();
        w.barrier();
    };
    EXPECT_THROW(run_thread_world(4, body), InputError);
}

TEST(ThreadWorld, of_several_causes_the_lowest_rank_is_rethrown) {
    EXPECT_EQ(message_of([] {
                  run_thread_world(4, [](World& w) {
                      if (w.rank() == 0) w.barrier();
                      throw InputError("cause " + std::to_string(w.rank()));
                  });
              }),
              "cause 1");
}

TEST(ThreadWorld, different_collectives_on_two_ranks_are_named) {
    const auto message = message_of([] {
        run_thread_world(2, [](World& w) {
            std::vector<float> data(4);
            if (w.rank() == 0)
                w.all_reduce(bytes_of(data), Number::f32, Reduce::sum);
            else
                w.broadcast(bytes_of(data), 0);
        });
    });
    EXPECT_THAT(message, HasSubstr("all_reduce of 16 bytes"));
    EXPECT_THAT(message, HasSubstr("broadcast of 16 bytes"));
}

TEST(ThreadWorld, a_message_longer_than_its_buffer_is_refused) {
    const auto body = [](World& w) {
        std::vector<float> send(4), receive(3);
        const int other = 1 - w.rank();
        const Send out{bytes_of(send), other, 0};
        const Receive in{bytes_of(receive), other, 0};
        w.exchange({&out, 1}, {&in, 1});
    };
    EXPECT_THAT(message_of([&] { run_thread_world(2, body); }), HasSubstr("16 bytes are sent but 12 expected"));
}

TEST(ThreadWorld, a_rank_that_ended_without_its_part_is_named) {
    const auto message = message_of([] {
        run_thread_world(3, [](World& w) {
            if (w.rank() != 2) w.barrier();
        });
    });
    EXPECT_THAT(message, HasSubstr("rank 2 ended without its part in barrier"));
}

TEST(ThreadWorld, an_abandoned_request_fails_the_peers_instead_of_touching_freed_memory) {
    const auto body = [](World& w) {
        std::vector<float> data(100'000, 1.0F);
        const auto request = w.start_all_reduce(bytes_of(data), Number::f32, Reduce::sum);
        if (w.rank() == 1) throw InputError("spoiled");
        request->wait();
        w.barrier();
    };
    EXPECT_THROW(run_thread_world(2, body), InputError);
}

TEST(ThreadWorld, data_move_only_inside_test_or_wait) {
    run_thread_world(2, [](World& w) {
        const int other = 1 - w.rank();
        const std::vector<int> send{w.rank() + 1};
        std::vector<int> receive{-1};
        const Send out{bytes_of(send), other, 0};
        const Receive in{bytes_of(receive), other, 0};
        const auto request = w.start_exchange({&out, 1}, {&in, 1});
        // Between the start and the second barrier no rank looks at its request.
        w.barrier();
        EXPECT_EQ(receive[0], -1);
        w.barrier();
        request->wait();
        EXPECT_EQ(receive[0], other + 1);
    });
}

TEST(ThreadWorld, sums_are_added_in_rank_order) {
    run_thread_world(3, [](World& w) {
        // In fp32 (2^24 + 1) + 1 = 2^24, since each 1 is half a unit in the last place and ties go to even; 2^24 + (1 +
        // 1) = 2^24 + 2.
        std::vector<float> data{w.rank() == 0 ? 16777216.0F : 1.0F};
        w.all_reduce(bytes_of(data), Number::f32, Reduce::sum);
        EXPECT_EQ(data[0], 16777216.0F);
        data = {w.rank() == 2 ? 16777216.0F : 1.0F};
        w.all_reduce(bytes_of(data), Number::f32, Reduce::sum);
        EXPECT_EQ(data[0], 16777218.0F);
    });
}

TEST(ThreadWorld, a_world_of_no_ranks_is_refused) {
    EXPECT_THROW(run_thread_world(0, [](World&) {}), LogicError);
}

TEST(SelfWorld, waiting_for_a_message_that_cannot_come_throws_instead_of_hanging) {
    const auto w = make_self_world();
    std::vector<int> room(1);
    const Receive in{bytes_of(room), 0, 0};
    EXPECT_THROW(w->exchange({}, {&in, 1}), RuntimeError);
}

TEST(World, abort_ends_the_program_with_its_status) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(make_self_world()->abort(7), testing::ExitedWithCode(7), "");
    EXPECT_EXIT(run_thread_world(2,
                                 [](World& w) {
                                     if (w.rank() == 1) w.abort(9);
                                     w.barrier();
                                 }),
                testing::ExitedWithCode(9), "");
}

}  // namespace
}  // namespace lockstep::world
