// Blocking collectives.
#include <bit>
#include <cstdint>
#include <random>

#include "base/error.hpp"
#include "world/contract.hpp"

namespace lockstep::world {
namespace {

TEST_P(WorldContract, ranks_count_from_zero_and_share_a_host) {
    on_every_rank([](World& w) {
        const std::vector<int> mine{w.rank()};
        std::vector<int> all(w.size());
        w.all_gather(bytes_of(mine), bytes_of(all));
        for (int r = 0; r < w.size(); ++r) EXPECT_EQ(all[r], r);
        EXPECT_EQ(w.local_size(), w.size());
        EXPECT_EQ(w.local_rank(), w.rank());
        EXPECT_FALSE(w.host().empty());
    });
}

TEST_P(WorldContract, broadcast_copies_the_root_to_all) {
    on_every_rank([](World& w) {
        for (int root = 0; root < w.size(); ++root) {
            std::vector<std::int64_t> data(1001, w.rank() == root ? 7 + root : -1);
            w.broadcast(bytes_of(data), root);
            EXPECT_EQ(data, std::vector<std::int64_t>(1001, 7 + root));
        }
    });
}

TEST_P(WorldContract, gather_fills_the_root_in_rank_order_and_no_other) {
    on_every_rank([](World& w) {
        for (int root = 0; root < w.size(); ++root) {
            const std::vector<int> mine(700, 10 * w.rank());
            std::vector<int> all(w.rank() == root ? 700 * w.size() : 5, -1);
            w.gather(bytes_of(mine), bytes_of(all), root);
            if (w.rank() != root) {
                EXPECT_EQ(all, std::vector<int>(5, -1));
                continue;
            }
            for (int i = 0; i < 700 * w.size(); ++i) ASSERT_EQ(all[i], 10 * (i / 700));
        }
    });
}

TEST_P(WorldContract, all_gather_is_in_rank_order) {
    on_every_rank([](World& w) {
        const std::vector<int> mine(3000, w.rank() + 1);
        std::vector<int> all(3000 * w.size());
        w.all_gather(bytes_of(mine), bytes_of(all));
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int>(i / 3000) + 1);
    });
}

TEST_P(WorldContract, all_to_all_transposes) {
    on_every_rank([](World& w) {
        std::vector<int> send, receive(500 * w.size()), expected;
        for (int peer = 0; peer < w.size(); ++peer) {
            send.insert(send.end(), 500, 100 * w.rank() + peer);
            expected.insert(expected.end(), 500, 100 * peer + w.rank());
        }
        w.all_to_all(bytes_of(send), bytes_of(receive));
        EXPECT_EQ(receive, expected);
    });
}

// Rank r holds r+1: the sum is n(n+1)/2, the largest n, the smallest 1. All are exact in every type, bf16 included.
template <class T>
void reduce_small_integers(World& w, Number type, T (*make)(float)) {
    const auto n = static_cast<float>(w.size());
    const std::pair<Reduce, float> cases[] = {{Reduce::sum, n * (n + 1) / 2}, {Reduce::max, n}, {Reduce::min, 1.0F}};
    for (const auto& [op, expected] : cases) {
        std::vector<T> data(1013, make(static_cast<float>(w.rank() + 1)));
        w.all_reduce(bytes_of(data), type, op);
        EXPECT_EQ(data, std::vector<T>(1013, make(expected))) << static_cast<int>(type) << ' ' << static_cast<int>(op);
        auto request_data = std::vector<T>(1013, make(static_cast<float>(w.rank() + 1)));
        w.start_all_reduce(bytes_of(request_data), type, op)->wait();
        EXPECT_EQ(request_data, data);
    }
}

template <class T>
T convert(float value) {
    return static_cast<T>(value);
}
// The upper half of a float's bits: exact for the small integers used here.
std::uint16_t upper_half(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }

TEST_P(WorldContract, all_reduce_knows_every_number_and_operation) {
    on_every_rank([](World& w) {
        reduce_small_integers<float>(w, Number::f32, convert<float>);
        reduce_small_integers<double>(w, Number::f64, convert<double>);
        reduce_small_integers<std::int32_t>(w, Number::i32, convert<std::int32_t>);
        reduce_small_integers<std::int64_t>(w, Number::i64, convert<std::int64_t>);
        reduce_small_integers<std::uint16_t>(w, Number::bf16, upper_half);
    });
}

TEST_P(WorldContract, all_reduce_orders_negative_numbers) {
    on_every_rank([](World& w) {
        // -1, -2, ...: compared as integers, bits of negative bf16 would order the other way round.
        std::vector<std::uint16_t> data(10, upper_half(static_cast<float>(-1 - w.rank())));
        w.all_reduce(bytes_of(data), Number::bf16, Reduce::max);
        EXPECT_EQ(data, std::vector<std::uint16_t>(10, upper_half(-1.0F)));
    });
}

TEST_P(WorldContract, bf16_sums_round_to_nearest_even) {
    on_every_rank([](World& w) {
        if (w.size() < 2) GTEST_SKIP() << "needs two ranks";
        // One unit in the last place of 1.0 is 2^-7. Adding half of it is a tie: 1 + 2^-8 -> 1 (even), (1 + 2^-7) +
        // 2^-8 -> 1 + 2^-6 (even); three quarters of it round up: 1 + 1.5 x 2^-8 -> 1 + 2^-7. Other ranks add zero.
        std::vector<std::uint16_t> data(3, 0);
        if (w.rank() == 0) data = {0x3f80, 0x3f81, 0x3f80};
        if (w.rank() == 1) data = {0x3b80, 0x3b80, 0x3bc0};
        w.all_reduce(bytes_of(data), Number::bf16, Reduce::sum);
        EXPECT_EQ(data, (std::vector<std::uint16_t>{0x3f80, 0x3f82, 0x3f81}));
    });
}

TEST_P(WorldContract, reduce_scatter_gives_each_rank_its_part) {
    on_every_rank([](World& w) {
        // Part p of rank r is r + 100 p: the sum over r is n(n-1)/2 + 100 p n.
        std::vector<float> send;
        for (int p = 0; p < w.size(); ++p) send.insert(send.end(), 999, static_cast<float>(w.rank() + 100 * p));
        std::vector<float> part(999), again(999);
        w.reduce_scatter(bytes_of(send), bytes_of(part), Number::f32, Reduce::sum);
        const int n = w.size();
        EXPECT_EQ(part, std::vector<float>(999, static_cast<float>(n * (n - 1) / 2 + 100 * w.rank() * n)));
        w.start_reduce_scatter(bytes_of(send), bytes_of(again), Number::f32, Reduce::sum)->wait();
        EXPECT_EQ(again, part);
    });
}

TEST_P(WorldContract, all_reduce_ends_with_equal_bits_on_all_ranks) {
    const auto seed = std::random_device{}();
    RecordProperty("seed", std::to_string(seed));
    on_every_rank([seed](World& w) {
        std::mt19937 random(seed + static_cast<unsigned>(w.rank()));
        std::uniform_real_distribution<float> uniform(-1, 1);
        std::vector<float> data(100'003);
        for (auto& x : data) x = uniform(random);
        auto progressed = data;
        w.all_reduce(bytes_of(data), Number::f32, Reduce::sum);
        w.start_all_reduce(bytes_of(progressed), Number::f32, Reduce::sum)->wait();
        for (auto* result : {&data, &progressed}) {
            auto of_root = *result;
            w.broadcast(bytes_of(of_root), 0);
            EXPECT_EQ(of_root, *result) << "seed " << seed;
        }
    });
}

TEST_P(WorldContract, empty_collectives_complete) {
    on_every_rank([](World& w) {
        std::vector<float> none;
        w.broadcast(bytes_of(none), 0);
        w.all_reduce(bytes_of(none), Number::f32, Reduce::sum);
        w.start_all_reduce(bytes_of(none), Number::f32, Reduce::sum)->wait();
        w.all_gather(bytes_of(none), bytes_of(none));
        w.all_to_all(bytes_of(none), bytes_of(none));
        w.barrier();
        w.start_broadcast(bytes_of(none), 0)->wait();
        w.barrier();
    });
}

TEST_P(WorldContract, split_orders_by_key_and_keeps_colours_apart) {
    on_every_rank([](World& w) {
        const auto half = w.split(w.rank() % 2, -w.rank());  // reversed order
        const int expected_size = (w.size() + 1 - w.rank() % 2) / 2;
        EXPECT_EQ(half->size(), expected_size);
        EXPECT_EQ(half->rank(), expected_size - 1 - w.rank() / 2);
        std::vector<int> sum{w.rank()};
        half->all_reduce(bytes_of(sum), Number::i32, Reduce::sum);
        int expected = 0;
        for (int r = w.rank() % 2; r < w.size(); r += 2) expected += r;
        EXPECT_EQ(sum[0], expected);
        const auto alone = half->split(half->rank(), 0);
        EXPECT_EQ(alone->size(), 1);
        alone->barrier();
        w.barrier();
    });
}

TEST_P(WorldContract, wrong_arguments_are_refused_before_anything_is_sent) {
    on_every_rank([](World& w) {
        std::vector<std::byte> three(3);
        EXPECT_THROW(w.all_reduce(three, Number::f32, Reduce::sum), LogicError);
        EXPECT_THROW(w.broadcast(three, w.size()), LogicError);
        EXPECT_THROW(w.broadcast(three, -1), LogicError);
        EXPECT_THROW(w.all_gather(three, std::span{three}.first(2)), LogicError);
        EXPECT_THROW(w.split(-1, 0), LogicError);
        const Send nobody{three, w.size(), 0};
        EXPECT_THROW(w.exchange({&nobody, 1}, {}), LogicError);
        w.barrier();
    });
}

}  // namespace
}  // namespace lockstep::world
