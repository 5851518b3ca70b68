#include "base/random.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

namespace lockstep {
namespace {

constexpr std::uint64_t seed = 1;
constexpr std::uint64_t draws = 1'000'000;

struct Moments {
    double mean = 0;
    double variance = 0;
};

template <class Draw>
Moments moments(Draw draw) {
    double sum = 0;
    double squares = 0;
    for (std::uint64_t i = 0; i < draws; ++i) {
        const double value = draw(i);
        sum += value;
        squares += value * value;
    }
    const double mean = sum / static_cast<double>(draws);
    return {mean, squares / static_cast<double>(draws) - mean * mean};
}

TEST(Random, uniform_has_mean_one_half_and_variance_one_twelfth) {
    // Standard errors at 1e6 draws: mean sqrt(1/12)/1e3 = 2.9e-4; variance sqrt((1/80 - 1/144)/1e6) = 7.5e-5. Five of
    // each.
    RecordProperty("seed", static_cast<int>(seed));
    const Moments uniform = moments([](std::uint64_t i) {
        const float value = random_uniform(seed, 3, i);
        EXPECT_TRUE(value >= 0 && value < 1) << "seed " << seed << " index " << i;
        return static_cast<double>(value);
    });
    EXPECT_NEAR(uniform.mean, 0.5, 1.5e-3) << "seed " << seed;
    EXPECT_NEAR(uniform.variance, 1.0 / 12, 4e-4) << "seed " << seed;
}

TEST(Random, normal_has_mean_zero_and_variance_one) {
    // Standard errors at 1e6 draws: mean 1e-3, variance sqrt(2)e-3. Five of each.
    RecordProperty("seed", static_cast<int>(seed));
    const Moments normal = moments([](std::uint64_t i) {
        const float value = random_normal(seed, 4, i);
        EXPECT_TRUE(std::isfinite(value)) << "seed " << seed << " index " << i;
        return static_cast<double>(value);
    });
    EXPECT_NEAR(normal.mean, 0, 5e-3) << "seed " << seed;
    EXPECT_NEAR(normal.variance, 1, 7.1e-3) << "seed " << seed;
}

TEST(Random, a_value_depends_on_its_index_and_not_on_the_order_of_asking) {
    const std::uint64_t forwards[] = {random_bits(9, 2, 5), random_bits(9, 2, 6)};
    const std::uint64_t backwards[] = {random_bits(9, 2, 6), random_bits(9, 2, 5)};
    EXPECT_EQ(forwards[0], backwards[1]);
    EXPECT_EQ(forwards[1], backwards[0]);
    static_assert(random_bits(9, 2, 5) != random_bits(9, 2, 6));
}

TEST(Random, seeds_streams_and_indices_give_distinct_values) {
    std::set<std::uint64_t> values;
    for (std::uint64_t s = 0; s < 20; ++s)
        for (std::uint64_t stream = 0; stream < 20; ++stream)
            for (std::uint64_t i = 0; i < 20; ++i) values.insert(random_bits(s, stream, i));
    EXPECT_EQ(values.size(), 8000u);  // a collision among 8000 of 2^64 has a chance of 2e-12
}

TEST(Random, neighbours_in_index_stream_and_seed_are_uncorrelated) {
    // Each of 64 bits differs with probability 1/2: over n = 1e4 pairs the mean count is 32 with standard error
    // 4/sqrt(n) = 0.04.
    constexpr std::uint64_t pairs = 10'000;
    double index = 0;
    double stream = 0;
    double seeds = 0;
    for (std::uint64_t i = 0; i < pairs; ++i) {
        const std::uint64_t bits = random_bits(seed, 0, i);
        index += std::popcount(bits ^ random_bits(seed, 0, i + 1));
        stream += std::popcount(bits ^ random_bits(seed, 1, i));
        seeds += std::popcount(bits ^ random_bits(seed + 1, 0, i));
    }
    EXPECT_NEAR(index / pairs, 32, 0.2) << "seed " << seed;
    EXPECT_NEAR(stream / pairs, 32, 0.2) << "seed " << seed;
    EXPECT_NEAR(seeds / pairs, 32, 0.2) << "seed " << seed;
}

TEST(Random, open_uniform_has_the_moments_of_a_uniform_and_tells_its_integers_apart) {
    // Five standard errors as above.
    RecordProperty("seed", static_cast<int>(seed));
    const Moments uniform = moments([](std::uint64_t i) {
        const double value = random_open_uniform(seed, i % 1000, 7, i / 1000);
        EXPECT_TRUE(value > 0 && value < 1) << "seed " << seed << " index " << i;
        return value;
    });
    EXPECT_NEAR(uniform.mean, 0.5, 5 * 2.9e-4);
    EXPECT_NEAR(uniform.variance, 1.0 / 12, 5 * 7.5e-5);
    EXPECT_EQ(random_open_uniform(1, 2, 3), random_open_uniform(1, 2, 3));
    const std::set<double> different{random_open_uniform(1, 2, 3), random_open_uniform(1, 3, 2),
                                     random_open_uniform(2, 2, 3), random_open_uniform(1, 2),
                                     random_open_uniform(1, 2, 3, 0)};
    EXPECT_EQ(different.size(), 5U);
}

}  // namespace
}  // namespace lockstep
