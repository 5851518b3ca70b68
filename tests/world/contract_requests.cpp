// Exchanges, operations in flight, and what is built on a World: agreement, strings, clocks.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "base/error.hpp"
#include "world/agree.hpp"
#include "world/clock_sync.hpp"
#include "world/contract.hpp"

namespace lockstep::world {
namespace {

void poll(Request& request) {
    while (!request.test()) {}
}

TEST_P(WorldContract, a_cycle_of_large_messages_does_not_deadlock) {
    on_every_rank([](World& w) {
        const int right = (w.rank() + 1) % w.size(), left = (w.rank() + w.size() - 1) % w.size();
        const std::vector<int> send(500'000, w.rank());
        std::vector<int> receive(500'000, -1);
        const Send out{bytes_of(send), right, 5};
        const Receive in{bytes_of(receive), left, 5};
        w.exchange({&out, 1}, {&in, 1});
        EXPECT_EQ(receive, std::vector<int>(500'000, left));
    });
}

TEST_P(WorldContract, messages_match_by_tag_whatever_their_order_and_empty_ones_too) {
    on_every_rank([](World& w) {
        const int right = (w.rank() + 1) % w.size(), left = (w.rank() + w.size() - 1) % w.size();
        const std::vector<int> one{1}, two{2, 2};
        std::vector<int> first(1), second(2);
        const std::vector<Send> sends{{bytes_of(one), right, 1}, {{}, right, 3}, {bytes_of(two), right, 2}};
        const std::vector<Receive> receives{{bytes_of(second), left, 2}, {bytes_of(first), left, 1}, {{}, left, 3}};
        w.exchange(sends, receives);
        EXPECT_EQ(first, one);
        EXPECT_EQ(second, two);
    });
}

TEST_P(WorldContract, messages_of_one_tag_keep_their_order) {
    on_every_rank([](World& w) {
        const int right = (w.rank() + 1) % w.size(), left = (w.rank() + w.size() - 1) % w.size();
        const std::vector<int> values{1, 2, 3};
        std::vector<int> received(3);
        std::vector<Send> sends;
        std::vector<Receive> receives;
        for (int i = 0; i < 3; ++i) {
            sends.push_back({bytes_of(values).subspan(i * sizeof(int), sizeof(int)), right, 0});
            receives.push_back({bytes_of(received).subspan(i * sizeof(int), sizeof(int)), left, 0});
        }
        w.exchange(sends, receives);
        EXPECT_EQ(received, values);
    });
}

TEST_P(WorldContract, a_receive_may_be_started_before_its_send) {
    on_every_rank([](World& w) {
        const int right = (w.rank() + 1) % w.size(), left = (w.rank() + w.size() - 1) % w.size();
        const std::vector<double> send(100, w.rank() + 0.5);
        std::vector<double> receive(100);
        const Receive in{bytes_of(receive), left, 0};
        const Send out{bytes_of(send), right, 0};
        const auto receiving = w.start_exchange({}, {&in, 1});
        const auto sending = w.start_exchange({&out, 1}, {});
        poll(*receiving);
        sending->wait();
        EXPECT_EQ(receive, std::vector<double>(100, left + 0.5));
    });
}

TEST_P(WorldContract, started_collectives_complete_when_polled) {
    on_every_rank([](World& w) {
        const int n = w.size();
        std::vector<int> broadcast(2000, w.rank() == n - 1 ? 9 : 0), gathered(2000 * n), sent(2000 * n),
            swapped(2000 * n);
        const std::vector<int> mine(2000, w.rank());
        for (int i = 0; i < 2000 * n; ++i) sent[i] = 10 * w.rank() + i / 2000;
        poll(*w.start_broadcast(bytes_of(broadcast), n - 1));
        poll(*w.start_all_gather(bytes_of(mine), bytes_of(gathered)));
        poll(*w.start_all_to_all(bytes_of(sent), bytes_of(swapped)));
        EXPECT_EQ(broadcast, std::vector<int>(2000, 9));
        for (int i = 0; i < 2000 * n; ++i) {
            ASSERT_EQ(gathered[i], i / 2000);
            ASSERT_EQ(swapped[i], 10 * (i / 2000) + w.rank());
        }
    });
}

TEST_P(WorldContract, all_reduces_in_flight_together_may_be_waited_for_in_any_order) {
    on_every_rank([](World& w) {
        // Three buckets of different sizes, none a multiple of the ranks; each rank waits in another order.
        std::vector<std::vector<float>> buckets;
        for (const std::size_t size : {300'001, 10, 1'000'003})
            buckets.emplace_back(size, static_cast<float>(w.rank() + 1));
        std::vector<std::unique_ptr<Request>> requests;
        for (auto& bucket : buckets) requests.push_back(w.start_all_reduce(bytes_of(bucket), Number::f32, Reduce::sum));
        std::vector<bool> done(3);
        for (int i = 0; std::accumulate(done.begin(), done.end(), 0) < 3; ++i) {
            const int k = (w.rank() + i) % 3;
            if (!done[k]) done[k] = requests[k]->test();
        }
        const auto expected = static_cast<float>(w.size() * (w.size() + 1) / 2);
        for (const auto& bucket : buckets) EXPECT_EQ(bucket, std::vector<float>(bucket.size(), expected));
    });
}

TEST_P(WorldContract, a_large_all_reduce_sums_every_element) {
    on_every_rank([](World& w) {
        std::vector<float> data(2'000'003);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 1000 + w.rank());
        auto progressed = data;
        w.all_reduce(bytes_of(data), Number::f32, Reduce::sum);
        poll(*w.start_all_reduce(bytes_of(progressed), Number::f32, Reduce::sum));
        const int n = w.size();
        for (std::size_t i = 0; i < data.size(); ++i) {
            const auto expected = static_cast<float>(static_cast<int>(i % 1000) * n + n * (n - 1) / 2);
            ASSERT_EQ(data[i], expected) << i;
            ASSERT_EQ(progressed[i], expected) << i;
        }
    });
}

TEST_P(WorldContract, agree_lets_all_pass_when_none_failed) {
    on_every_rank([](World& w) {
        int calls = 0;
        EXPECT_NO_THROW(agree(w, [&] { ++calls; }));
        EXPECT_EQ(calls, 1);
    });
}

TEST_P(WorldContract, agree_gives_all_ranks_the_exit_code_of_the_failing_one) {
    on_every_rank([](World& w) {
        const int failing = w.size() - 1;
        try {
            agree(w, [&] {
                if (w.rank() == failing) throw InputError("bad.yaml:3:1: unknown key");
            });
            ADD_FAILURE() << "rank " << w.rank() << " passed";
        } catch (const InputError& error) {
            EXPECT_EQ(error.code(), ExitCode::bad_input);
            const std::string own = "bad.yaml:3:1: unknown key";
            EXPECT_EQ(error.what(), w.rank() == failing ? own : "rank " + std::to_string(failing) + " failed: " + own);
        }
        w.barrier();  // the world is as good as before
    });
}

TEST_P(WorldContract, agree_names_the_lowest_of_several_failing_ranks) {
    on_every_rank([](World& w) {
        if (w.size() < 3) GTEST_SKIP() << "needs three ranks";
        try {
            agree(w, [&] {
                if (w.rank() == 1) throw std::out_of_range("one");
                if (w.rank() == 2) throw UsageError("two");
            });
            ADD_FAILURE() << "rank " << w.rank() << " passed";
        } catch (const std::out_of_range&) { EXPECT_EQ(w.rank(), 1); } catch (const Error& error) {
            EXPECT_EQ(error.what(), std::string(w.rank() == 2 ? "two" : "rank 1 failed: one"));
        }
    });
}

TEST_P(WorldContract, count_true_counts) {
    on_every_rank([](World& w) {
        EXPECT_EQ(count_true(w, true), w.size());
        EXPECT_EQ(count_true(w, w.rank() == 0), 1);
        EXPECT_EQ(count_true(w, false), 0);
    });
}

TEST_P(WorldContract, strings_of_different_lengths_reach_all) {
    on_every_rank([](World& w) {
        std::vector<std::string> expected;
        for (int r = 0; r < w.size(); ++r)
            expected.push_back(std::string(static_cast<std::size_t>(r), 'x'));  // rank 0: empty
        EXPECT_EQ(all_gather_strings(w, std::string(static_cast<std::size_t>(w.rank()), 'x')), expected);
        const int root = w.size() - 1;
        EXPECT_EQ(broadcast_string(w, w.rank() == root ? std::string("a\0b", 3) : "ignored, and longer", root),
                  std::string("a\0b", 3));
        EXPECT_EQ(broadcast_string(w, "", 0), "");
    });
}

TEST_P(WorldContract, ranks_of_one_host_share_their_clock) {
    on_every_rank([](World& w) {
        const ClockOffset offset = measure_clock_offset(w);
        EXPECT_EQ(offset.offset.count, 0);
        EXPECT_EQ(offset.uncertainty.count, 0);
    });
}

TEST_P(WorldContract, a_skewed_clock_is_found_within_its_uncertainty) {
    on_every_rank([](World& w) {
        // The clock of rank r runs r x 5 ms ahead, so its offset to rank 0 is -5 r ms; all ranks really share one
        // clock.
        const std::int64_t skew = 5'000'000LL * w.rank();
        const auto found = estimate_clock_offset(w, 8, [&] { return Nanoseconds{steady_now().count + skew}; });
        EXPECT_LE(std::abs(found.offset.count + skew), found.uncertainty.count) << found.offset.count;
        EXPECT_GE(found.uncertainty.count, 0);
    });
}

INSTANTIATE_TEST_SUITE_P(World, WorldContract, testing::ValuesIn(forms()), form_name);

}  // namespace
}  // namespace lockstep::world
