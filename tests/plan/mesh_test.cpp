#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/mesh.hpp"

namespace lockstep::plan {
namespace {

using testing::ElementsAre;

// 2 x 3 x 1 x 4 x 2 = 48 ranks; strides tp 1, cp 2, ep 6, dp 6, pp 24.
constexpr Mesh mesh{.tp = 2, .cp = 3, .ep = 1, .dp = 4, .pp = 2};

TEST(Mesh, tp_varies_fastest_and_pp_slowest) {
    // 41 = 1 + 2 (2 + 3 (0 + 1 (2 + 4 1)))
    const Coordinates c = mesh.coordinates(41);
    EXPECT_EQ(c.tp, 1);
    EXPECT_EQ(c.cp, 2);
    EXPECT_EQ(c.ep, 0);
    EXPECT_EQ(c.dp, 2);
    EXPECT_EQ(c.pp, 1);
}

TEST(Mesh, rank_and_coordinates_are_inverse) {
    ASSERT_EQ(mesh.ranks(), 48);
    for (int rank = 0; rank < mesh.ranks(); ++rank) EXPECT_EQ(mesh.rank(mesh.coordinates(rank)), rank);
}

TEST(Mesh, a_group_holds_the_ranks_that_differ_in_its_axes_only) {
    EXPECT_THAT(mesh.group(41, {Axis::tp}), ElementsAre(40, 41));
    EXPECT_THAT(mesh.group(41, {Axis::cp}), ElementsAre(37, 39, 41));
    EXPECT_THAT(mesh.group(41, {Axis::dp}), ElementsAre(29, 35, 41, 47));
    EXPECT_THAT(mesh.group(41, {Axis::pp}), ElementsAre(17, 41));
    EXPECT_THAT(mesh.group(41, {Axis::ep}), ElementsAre(41));
    EXPECT_THAT(mesh.group(41, {}), ElementsAre(41));
}

TEST(Mesh, a_group_over_two_axes_is_ascending_whatever_their_order) {
    EXPECT_THAT(mesh.group(41, {Axis::pp, Axis::tp}), ElementsAre(16, 17, 40, 41));
    EXPECT_EQ(mesh.group(41, {Axis::tp, Axis::pp}), mesh.group(41, {Axis::pp, Axis::tp}));
    EXPECT_THAT(mesh.group(0, {Axis::tp, Axis::cp}), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Mesh, groups_over_one_axis_split_all_ranks) {
    std::vector<int> times_seen(48, 0);
    for (int rank = 0; rank < 48; ++rank)
        for (const int member : mesh.group(rank, {Axis::dp})) ++times_seen[static_cast<std::size_t>(member)];
    EXPECT_THAT(times_seen, testing::Each(4));  // once for each member of its group
}

TEST(Mesh, ranks_outside_are_refused) {
    EXPECT_THROW(mesh.coordinates(48), LogicError);
    EXPECT_THROW(mesh.coordinates(-1), LogicError);
    EXPECT_THROW(mesh.rank({.tp = 2}), LogicError);
}

TEST(Mesh, a_coordinate_is_reached_by_its_axis) {
    Coordinates c;
    c[Axis::dp] = 3;
    EXPECT_EQ(c.dp, 3);
    EXPECT_EQ(mesh.extent(Axis::cp), 3);
    EXPECT_EQ(to_string(Axis::pp), "pp");
}

}  // namespace
}  // namespace lockstep::plan
