// Places, divisions and random numbers of kernels against those of the host.
#include "gpu/place.cuh"

#include "base/error.hpp"
#include "gpu/parity.hpp"
#include "gpu/random.cuh"

namespace lockstep::gpu::testing {
namespace {

TEST(Divider, divides_like_the_operator_up_to_the_largest_number_and_beyond) {
    constexpr std::int64_t large = (std::int64_t{1} << 31) - 1;
    for (const std::int64_t d : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7}, std::int64_t{641},
                                 std::int64_t{65536}, large - 1, large, large + 5}) {
        const Divider divider(d);
        for (const std::int64_t n :
             {std::int64_t{0}, d - 1, d, d + 1, 7 * d - 1, 7 * d, large - 1, large, large + 1, large * 1000 + 17}) {
            EXPECT_EQ(divider.quotient(n), n / d) << n << " / " << d;
            EXPECT_EQ(divider.remainder(n, n / d), n % d);
        }
        for (std::uint64_t i = 0; i < 1000; ++i) {
            const auto n = static_cast<std::int64_t>(random_bits(1, 2, i) >> 33);
            ASSERT_EQ(divider.quotient(n), n / d) << n << " / " << d;
        }
    }
}

TEST(DevicePlace, gives_every_element_the_index_that_step_gives_it) {
    plan::Mesh mesh;
    mesh.cp = 2;
    mesh.tp = 3;
    const auto zigzag = step::Shard::Order::zigzag;
    const std::vector<std::pair<Shape, std::vector<step::Shard>>> splits{
        {{}, {}},
        {{6}, {}},
        {{4, 3}, {{0, plan::Axis::cp}}},
        {{4, 3}, {{0, plan::Axis::cp, zigzag}}},
        {{4, 2, 3}, {{0, plan::Axis::cp, zigzag}, {2, plan::Axis::tp}}},
        {{2, 2, 3, 1, 2, 2}, {{1, plan::Axis::cp, zigzag}, {3, plan::Axis::tp}}}};
    for (const auto& [shape, shards] : splits)
        for (int rank = 0; rank < 6; ++rank) {
            const cpu::Operand part = cpu::testing::part(shape, shards, mesh, rank);
            const DevicePlace place(part);
            const step::GlobalPlace expected(part);
            EXPECT_EQ(place.elements(), expected.elements());
            for (std::int64_t i = 0; i < part.elements(); ++i) EXPECT_EQ(place(i), expected(i)) << to_string(shape);
        }
    EXPECT_THROW(DevicePlace(slot({1, 1, 1, 1, 1, 1, 1})), LogicError);
}

TEST(DevicePlace, knows_how_long_its_stretches_are) {
    plan::Mesh mesh;
    mesh.tp = 2;
    const DevicePlace split(cpu::testing::part({3, 12}, {{1, plan::Axis::tp}}, mesh, 1));
    EXPECT_TRUE(split.has_stretches_of(4));
    EXPECT_FALSE(split.has_stretches_of(8));
    EXPECT_TRUE(DevicePlace(slot({3, 8})).has_stretches_of(24)) << "one stretch of all";
}

TEST(DeviceRuns, finds_positions_here_and_misses_those_elsewhere) {
    const DeviceRuns runs({{0, 4, 2}, {2, 10, 2}});
    for (const auto& [local, global] : {std::pair{0, 4}, {1, 5}, {2, 10}, {3, 11}}) {
        EXPECT_EQ(runs.global(local), global);
        EXPECT_EQ(runs.local(global), local);
    }
    for (const std::int64_t elsewhere : {0, 3, 6, 9, 12}) EXPECT_EQ(runs.local(elsewhere), -1);
    EXPECT_THROW(DeviceRuns(std::vector<step::IndexRun>(3)), LogicError);
    EXPECT_THROW(DeviceRuns(std::vector<step::IndexRun>{}), LogicError);
}

TEST(Random, normal_numbers_of_kernels_are_the_hosts) {
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(gpu::random_normal(3, 5, i), lockstep::random_normal(3, 5, i));
}

}  // namespace
}  // namespace lockstep::gpu::testing
