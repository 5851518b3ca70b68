#include "step/arena_packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::step::test {
namespace {

constexpr std::int64_t unit = 64;

/// Pairs that share bytes while both live.
int collisions(const std::vector<Tenant>& tenants, const Packing& packing) {
    int found = 0;
    for (std::size_t a = 0; a < tenants.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            const bool is_apart = packing.offset[a] + tenants[a].bytes <= packing.offset[b] ||
                                  packing.offset[b] + tenants[b].bytes <= packing.offset[a];
            found += !is_apart && overlap(tenants[a].life, tenants[b].life) ? 1 : 0;
        }
    return found;
}

/// Lives of one to three intervals.
std::vector<Tenant> random_tenants(std::mt19937& random) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<Tenant> tenants(static_cast<std::size_t>(1 + below(60)));
    for (Tenant& tenant : tenants) {
        tenant.bytes = unit * (1 + below(below(4) == 0 ? 1000 : 20));
        for (int k = 1 + below(3); k > 0; --k) {
            const int begin = below(100);
            tenant.life.intervals.push_back({begin, begin + below(30)});
        }
        join(tenant.life.intervals);
    }
    return tenants;
}

TEST(ArenaPacking, no_two_that_live_at_once_share_bytes_and_the_end_is_the_highest_of_all) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
        const std::vector<Tenant> tenants = random_tenants(random);
        const std::int64_t least = live_bytes(tenants);
        const Packing packing = pack(tenants, least);
        ASSERT_EQ(packing.offset.size(), tenants.size());
        ASSERT_EQ(collisions(tenants, packing), 0) << "seed " << seed << " instance " << i;
        ASSERT_GE(packing.bytes, least) << "seed " << seed << " instance " << i;
        std::int64_t end = 0;
        for (std::size_t k = 0; k < tenants.size(); ++k) {
            ASSERT_EQ(packing.offset[k] % unit, 0);
            end = std::max(end, packing.offset[k] + tenants[k].bytes);
        }
        ASSERT_EQ(packing.bytes, end);
        ASSERT_LE(packing.bytes, pack(tenants, least, 0).bytes) << "seed " << seed << " instance " << i;
        ASSERT_EQ(packing.offset, pack(tenants, least).offset) << "seed " << seed << " instance " << i;
    }
}

TEST(ArenaPacking, what_sticks_out_comes_earlier_until_it_fits) {
    // Bytes x times. The largest first: D at 0, C at 0, A on C at 3, and B finds 4 bytes of D below and 2 of A behind
    // it: 6. In 5 bytes B lies on D, at 4, and A and C beneath.
    const std::vector<Tenant> tenants{{2 * unit, {{{6, 7}}}},   // A
                                      {1 * unit, {{{0, 6}}}},   // B
                                      {3 * unit, {{{7, 7}}}},   // C
                                      {4 * unit, {{{3, 3}}}}};  // D
    EXPECT_EQ(live_bytes(tenants), 5 * unit);
    EXPECT_EQ(pack(tenants, 5 * unit, 0).bytes, 6 * unit);
    const Packing packing = pack(tenants, 5 * unit);
    EXPECT_EQ(packing.bytes, 5 * unit);
    EXPECT_EQ(collisions(tenants, packing), 0);
}

TEST(ArenaPacking, stops_at_what_is_enough) {
    const std::vector<Tenant> tenants{
        {2 * unit, {{{6, 7}}}}, {1 * unit, {{{0, 6}}}}, {3 * unit, {{{7, 7}}}}, {4 * unit, {{{3, 3}}}}};
    EXPECT_EQ(pack(tenants, 6 * unit).offset, pack(tenants, 6 * unit, 0).offset);
}

TEST(ArenaPacking, of_nothing_takes_nothing) {
    EXPECT_EQ(live_bytes({}), 0);
    EXPECT_EQ(pack({}, 0).bytes, 0);
}

TEST(ArenaPacking, lives_end_before_the_next_begins) {
    // At 1 both of 1 and 2 units, at 2 only the other.
    const std::vector<Tenant> tenants{{1 * unit, {{{0, 1}}}}, {2 * unit, {{{1, 2}}}}, {3 * unit, {{{3, 3}, {5, 9}}}}};
    EXPECT_EQ(live_bytes(tenants), 3 * unit);
    EXPECT_EQ(pack(tenants, 3 * unit).bytes, 3 * unit);
}

}  // namespace
}  // namespace lockstep::step::test
