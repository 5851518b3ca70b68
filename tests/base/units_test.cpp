#include "base/units.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace lockstep {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
    a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
    a < b;
};

TEST(Units, bytes_over_bandwidth_is_seconds_at_compile_time) {
    static_assert(std::same_as<decltype(Bytes{} / Bandwidth{}), Seconds>);
    static_assert(std::same_as<decltype(Flops{} / FlopRate{}), Seconds>);
    static_assert(std::same_as<decltype(Bandwidth{} * Seconds{}), Bytes>);
    static_assert(std::same_as<decltype(Seconds{} / Seconds{}), double>);
    static_assert(std::same_as<decltype(Frequency{} * Seconds{}), double>);
    static_assert(std::same_as<decltype(Flops{} / Bytes{}), Quantity<-1, 1, 0>>);
    // 100 MB over 25 GB/s: 1e8 / 2.5e10 = 4 ms
    static_assert(Bytes{1e8} / 25_GBps == Seconds{4e-3});
    EXPECT_EQ((Bytes{1e8} / 25_GBps).value, 4e-3);
}

TEST(Units, unlike_quantities_neither_add_nor_compare) {
    static_assert(Addable<Bytes, Bytes> && Comparable<Bytes, Bytes>);
    static_assert(!Addable<Bytes, Seconds> && !Comparable<Bytes, Seconds>);
    static_assert(!Addable<Bytes, double> && !Comparable<Seconds, double>);
    static_assert(!std::is_convertible_v<double, Bytes> && !std::is_convertible_v<Bytes, double>);
    Seconds total{1};
    total += 500_ms;
    EXPECT_EQ(total, 1.5_s);
    EXPECT_LT(3_us, 1_ms);
}

TEST(Units, literals_count_bits_as_eighths_and_binary_prefixes_as_powers_of_1024) {
    EXPECT_EQ(400_Gbps, 50_GBps);
    EXPECT_EQ(1_GiB, 1024_MiB);
    EXPECT_EQ(1_MiB, Bytes{1048576});
    EXPECT_DOUBLE_EQ((2_TFLOPS * 0.5).value, 1e12);
}

TEST(Time, nanoseconds_and_picoseconds_convert_to_seconds_and_round_to_the_nearest) {
    EXPECT_EQ(to_picoseconds(Seconds{1e-6}).count, 1'000'000);
    EXPECT_EQ(to_picoseconds(Seconds{1.4e-12}).count, 1);
    EXPECT_EQ(to_picoseconds(Seconds{1.6e-12}).count, 2);
    EXPECT_EQ(Picoseconds{1499}.nanoseconds().count, 1);
    EXPECT_EQ(Picoseconds{1500}.nanoseconds().count, 2);
    EXPECT_DOUBLE_EQ(Nanoseconds{2'500'000}.seconds().value, 2.5e-3);
    EXPECT_EQ((Picoseconds{7} - Picoseconds{3}).count, 4);
}

TEST(Ids, ids_of_different_tables_are_different_types_and_start_invalid) {
    struct Rank;
    struct Link;
    static_assert(!std::is_convertible_v<Id<Rank>, Id<Link>>);
    EXPECT_FALSE(Id<Rank>{}.is_valid());
    EXPECT_TRUE((Id<Rank>{0}).is_valid());
    EXPECT_LT((Id<Rank>{1}), (Id<Rank>{2}));
}

}  // namespace
}  // namespace lockstep
