// Indices in the whole tensor of a part's elements, worked out by hand.
#include <gtest/gtest.h>

#include <tuple>

#include "step/global_place.hpp"

namespace lockstep::step {
namespace {

using plan::Axis;
using Stretch = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // local, global, count

Place part(Shape local, std::vector<Shard> shards, const plan::Mesh& mesh, int rank) {
    Tensor tensor;
    tensor.shape = std::move(local);
    tensor.shards = std::move(shards);
    return place_of(tensor, mesh, rank);
}
/// Row-major index in the whole tensor of a part's element, dimension by dimension.
std::int64_t index_in_whole(const Place& part, std::int64_t element) {
    std::int64_t index = 0, stride = 1;
    for (std::size_t d = part.shape.rank(); d-- > 0;) {
        const std::int64_t local = element % part.shape[d];
        element /= part.shape[d];
        for (const IndexRun& run : part.runs[d])
            if (local >= run.local && local < run.local + run.count) index += (run.global + local - run.local) * stride;
        stride *= part.global[d];
    }
    return index;
}

std::vector<Stretch> stretches(const Place& part, std::int64_t begin, std::int64_t end) {
    std::vector<Stretch> found;
    GlobalPlace(part).for_stretches(
        begin, end, [&](std::int64_t l, std::int64_t g, std::int64_t n) { found.emplace_back(l, g, n); });
    return found;
}

TEST(GlobalPlace, a_tensor_that_nobody_splits_is_one_stretch) {
    const Place whole = part({3, 4, 5}, {}, {}, 0);
    EXPECT_EQ(stretches(whole, 0, 60), (std::vector<Stretch>{{0, 0, 60}}));
    EXPECT_EQ(stretches(whole, 7, 31), (std::vector<Stretch>{{7, 7, 24}}));
}

TEST(GlobalPlace, a_split_of_the_outermost_dimension_only_shifts) {
    plan::Mesh mesh;
    mesh.dp = 2;
    EXPECT_EQ(stretches(part({3, 4}, {{0, Axis::dp}}, mesh, 1), 0, 12), (std::vector<Stretch>{{0, 12, 12}}));
}

TEST(GlobalPlace, splits_of_inner_dimensions_give_a_stretch_a_row) {
    // [2, 4, 3], the second dimension halved: this rank has rows 2 and 3 of each block of 4.
    plan::Mesh mesh;
    mesh.dp = 2;
    EXPECT_EQ(stretches(part({2, 2, 3}, {{1, Axis::dp}}, mesh, 1), 0, 12),
              (std::vector<Stretch>{{0, 6, 6}, {6, 18, 6}}));
    // [2, 2, 6], the last halved, from element 1 to element 10 of 12.
    EXPECT_EQ(stretches(part({2, 2, 3}, {{2, Axis::dp}}, mesh, 1), 1, 10),
              (std::vector<Stretch>{{1, 4, 2}, {3, 9, 3}, {6, 15, 3}, {9, 21, 1}}));
}

TEST(GlobalPlace, zigzag_splits_have_two_runs_unless_these_meet) {
    // 8 positions of 2 elements over 2 ranks: rank 0 has quarters 0 and 3; rank 1 has 1 and 2, which lie together.
    plan::Mesh mesh;
    mesh.cp = 2;
    const auto order = Shard::Order::zigzag;
    EXPECT_EQ(stretches(part({4, 2}, {{0, Axis::cp, order}}, mesh, 1), 0, 8), (std::vector<Stretch>{{0, 4, 8}}));
    EXPECT_EQ(stretches(part({4, 2}, {{0, Axis::cp, order}}, mesh, 0), 0, 8),
              (std::vector<Stretch>{{0, 0, 4}, {4, 12, 4}}));
}

TEST(GlobalPlace, single_elements_lie_where_their_stretch_says) {
    plan::Mesh mesh;
    mesh.tp = mesh.cp = mesh.dp = 2;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
        const Place o =
            part({4, 3, 5}, {{0, Axis::cp, Shard::Order::zigzag}, {1, Axis::dp}, {2, Axis::tp}}, mesh, rank);
        const GlobalPlace place(o);
        std::int64_t seen = 0;
        place.for_stretches(0, 60, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
            EXPECT_EQ(local, seen);
            for (std::int64_t i = 0; i < n; ++i) {
                EXPECT_EQ(place(local + i), global + i);
                EXPECT_EQ(index_in_whole(o, local + i), global + i);
            }
            seen += n;
        });
        EXPECT_EQ(seen, 60);
        EXPECT_EQ(place.elements(), 480);
    }
}

}  // namespace
}  // namespace lockstep::step
