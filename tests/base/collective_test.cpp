#include "base/collective.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Collective, names_are_read_back) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                            CollectiveKind::broadcast, CollectiveKind::all_to_all})
        EXPECT_EQ(parse_collective(to_string(kind)), kind);
    EXPECT_EQ(parse_collective("allreduce"), std::nullopt);
}

TEST(Collective, bus_factors_are_those_of_nccl_tests) {
    // n = 8: all_reduce 2 x 7/8, the others but broadcast 7/8.
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 8), 1.75);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_gather, 8), 0.875);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::reduce_scatter, 8), 0.875);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_to_all, 8), 0.875);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::broadcast, 8), 1);
}

}  // namespace
}  // namespace lockstep
