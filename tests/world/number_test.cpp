#include "world/number.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "world/forms.hpp"

namespace lockstep::world {
namespace {

TEST(Bf16, rounds_to_nearest_even) {
    EXPECT_EQ(to_bf16(1.0F), 0x3f80);
    EXPECT_EQ(to_bf16(1.0F + 0x1p-8F), 0x3f80);             // a tie: 1.0 is even
    EXPECT_EQ(to_bf16(1.0F + 0x1p-8F + 0x1p-20F), 0x3f81);  // above the tie
    EXPECT_EQ(to_bf16(1.0F + 0x1.8p-7F), 0x3f82);           // a tie between 0x3f81 and 0x3f82
    EXPECT_EQ(to_bf16(-1.0F), 0xbf80);
}

TEST(Bf16, overflows_to_infinity_and_keeps_nan) {
    // The largest bf16 is (2 - 2^-7) 2^127; the largest float lies more than half a step above it.
    EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
    EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()), 0xff80);
    EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
    EXPECT_TRUE(
        std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001U)))));  // its mark is in the lower half only
}

TEST(Bf16, every_value_survives_the_way_through_float) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const float value = from_bf16(static_cast<std::uint16_t>(bits));
        if (std::isnan(value)) continue;
        ASSERT_EQ(to_bf16(value), bits);
    }
}

TEST(Number, integer_sums_wrap) {
    std::vector<std::int32_t> into{std::numeric_limits<std::int32_t>::max()};
    const std::vector<std::int32_t> from{1};
    accumulate(bytes_of(into), bytes_of(from), Number::i32, Reduce::sum);
    EXPECT_EQ(into[0], std::numeric_limits<std::int32_t>::min());
}

TEST(Number, sizes_are_those_of_the_c_types) {
    EXPECT_EQ(size_of(Number::f32), sizeof(float));
    EXPECT_EQ(size_of(Number::f64), sizeof(double));
    EXPECT_EQ(size_of(Number::bf16), sizeof(std::uint16_t));
    EXPECT_EQ(size_of(Number::i32), sizeof(std::int32_t));
    EXPECT_EQ(size_of(Number::i64), sizeof(std::int64_t));
}

}  // namespace
}  // namespace lockstep::world
