#include "config/quantity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "refusal.hpp"

namespace lockstep::config {
namespace {

using namespace literals;
using ::testing::HasSubstr;

TEST(ParseQuantity, sizes_have_decimal_and_binary_prefixes) {
    EXPECT_EQ(parse_bytes("25 MiB"), Bytes{25.0 * 1024 * 1024});
    EXPECT_EQ(parse_bytes("150kB"), Bytes{150e3});
    EXPECT_EQ(parse_bytes("64 KB"), Bytes{64e3});
    EXPECT_EQ(parse_bytes("80 GiB"), 80_GiB);
    EXPECT_EQ(parse_bytes("  1.5 TB "), Bytes{1.5e12});
    EXPECT_EQ(parse_bytes("7 B"), 7_B);
}

TEST(ParseQuantity, times_go_from_picoseconds_to_hours) {
    EXPECT_DOUBLE_EQ(parse_seconds("3 us").value, 3e-6);
    EXPECT_DOUBLE_EQ(parse_seconds("3 \xc2\xb5s").value, 3e-6);
    EXPECT_DOUBLE_EQ(parse_seconds("250 ps").value, 250e-12);
    EXPECT_EQ(parse_seconds("1.5 min"), Seconds{90});
    EXPECT_EQ(parse_seconds("2 h"), Seconds{7200});
}

TEST(ParseQuantity, a_bit_rate_is_an_eighth_of_the_byte_rate) {
    EXPECT_EQ(parse_bandwidth("400 Gb/s"), 50_GBps);
    EXPECT_EQ(parse_bandwidth("400Gbps"), 50_GBps);
    EXPECT_EQ(parse_bandwidth("25 GB/s"), 25_GBps);
    EXPECT_EQ(parse_bandwidth("1 GiB/s"), Bandwidth{1073741824});
}

TEST(ParseQuantity, rates_of_operations_have_several_spellings) {
    for (const char* text : {"312 TFLOPS", "312 TFLOP/s", "312 TFLOPs", "312e12 FLOPS", "312 TOPS", "0.312 PFLOPS"})
        EXPECT_DOUBLE_EQ(parse_flop_rate(text).value, 312e12) << text;
    EXPECT_EQ(parse_watts("1.2 kW"), Watts{1200});
}

TEST(ParseQuantity, only_zero_needs_no_unit) {
    EXPECT_EQ(parse_bytes("0"), Bytes{});
    EXPECT_EQ(parse_seconds("0.0"), Seconds{});
    const std::string message = refusal([] { parse_bytes("25"); });
    EXPECT_THAT(message, HasSubstr("wants a size such as '25 MiB'"));
    EXPECT_THAT(message, HasSubstr("KiB, MiB, GiB"));
    EXPECT_THAT(message, HasSubstr("got '25'"));
}

TEST(ParseQuantity, what_is_no_quantity_of_the_kind_is_refused) {
    for (const char* text : {"", "B", "MiB 25", "-3 B", "nan B", "inf B", "1e999 B", "1e300 EB1", "25 mb", "25 Mb",
                             "25 XB", "25 MMB", "25 MiB x", "25 MB/s", "1,5 MB", "0x10 B", "3 us"})
        EXPECT_THROW(parse_bytes(text), InputError) << text;
    EXPECT_THROW(parse_seconds("3 Ms"), InputError);
    EXPECT_THROW(parse_bandwidth("25 GB"), InputError);
}

TEST(ParseQuantity, widespread_wrong_units_are_explained) {
    EXPECT_THAT(refusal([] { parse_bandwidth("16 GT/s"); }), HasSubstr("transfers per second"));
    EXPECT_THAT(refusal([] { parse_bytes("25 Mb"); }), HasSubstr("b is bit"));
    EXPECT_THAT(refusal([] { parse_flop_rate("312 TFLOP"); }), HasSubstr("per second"));
    EXPECT_THAT(refusal([] { parse_bytes("-3 MiB"); }), HasSubstr("negative"));
    EXPECT_LT(refusal([] { parse_bytes(std::string(100'000, 'x')); }).size(), 300u);
}

TEST(FormatQuantity, shows_three_digits_and_no_trailing_zeros) {
    EXPECT_EQ(format(25_MiB), "25 MiB");
    EXPECT_EQ(format(Bytes{97.5 * 1048576}), "97.5 MiB");
    EXPECT_EQ(format(Bytes{1023}), "1023 B");
    EXPECT_EQ(format(Bytes{}), "0 B");
    EXPECT_EQ(format(900_GBps), "900 GB/s");
    EXPECT_EQ(format(Bandwidth{1.5e9}), "1.5 GB/s");
    EXPECT_EQ(format(312_TFLOPS), "312 TFLOP/s");
    EXPECT_EQ(format(Flops{4.1094e9}), "4.11 GFLOP");
    EXPECT_EQ(format(Flops{3.14e23}), "314 ZFLOP");
    EXPECT_EQ(format(Seconds{3.2e-6}), "3.2 us");
    EXPECT_EQ(format(Seconds{0.12345}), "123 ms");
    EXPECT_EQ(format(Seconds{90}), "90 s");
    EXPECT_EQ(format(Seconds{5400}), "1.5 h");
    EXPECT_EQ(format(Seconds{}), "0 s");
    EXPECT_EQ(format(Watts{700}), "700 W");
    EXPECT_EQ(format(Seconds{-2e-3}), "-2 ms");
}

TEST(FormatQuantity, rounding_up_moves_to_the_next_prefix) {
    EXPECT_EQ(format(Bandwidth{999.6e6}), "1 GB/s");
    EXPECT_EQ(format(Bytes{1023.9 * 1024}), "1 MiB");
    EXPECT_EQ(format(Seconds{999.9e-9}), "1 us");
}

TEST(FormatQuantity, what_it_writes_is_read_back_within_half_a_unit_of_the_third_digit) {
    constexpr std::uint64_t seed = 7;
    RecordProperty("seed", static_cast<int>(seed));
    for (std::uint64_t i = 0; i < 2000; ++i) {
        const double value = std::pow(10.0, -11.0 + 26.0 * random_uniform(seed, 0, i));
        const double tolerance = 0.00502 * value;
        ASSERT_NEAR(parse_seconds(format(Seconds{value})).value, value, tolerance) << "seed " << seed << " index " << i;
        if (value < 1) continue;
        ASSERT_NEAR(parse_bytes(format(Bytes{value})).value, value, tolerance) << "seed " << seed << " index " << i;
        ASSERT_NEAR(parse_bandwidth(format(Bandwidth{value})).value, value, tolerance)
            << "seed " << seed << " index " << i;
        ASSERT_NEAR(parse_flop_rate(format(FlopRate{value})).value, value, tolerance)
            << "seed " << seed << " index " << i;
    }
}

TEST(FormatCount, groups_digits_by_three) {
    EXPECT_EQ(format_count(25557032), "25,557,032");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_count(1000), "1,000");
    EXPECT_EQ(format_count(-123456), "-123,456");
    EXPECT_EQ(format_count(0), "0");
}

}  // namespace
}  // namespace lockstep::config
