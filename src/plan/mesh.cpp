#include "plan/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace lockstep::plan {

namespace {

constexpr std::array<Axis, 6> axes_in_rank_order{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::replica, Axis::pp};

}  // namespace

std::string_view to_string(Axis axis) {
    switch (axis) {
        case Axis::tp: return "tp";
        case Axis::cp: return "cp";
        case Axis::ep: return "ep";
        case Axis::dp: return "dp";
        case Axis::replica: return "replica";
        case Axis::pp: return "pp";
    }
    throw LogicError("an axis without a name");
}

int& Coordinates::operator[](Axis axis) {
    switch (axis) {
        case Axis::tp: return tp;
        case Axis::cp: return cp;
        case Axis::ep: return ep;
        case Axis::dp: return dp;
        case Axis::replica: return replica;
        case Axis::pp: return pp;
    }
    throw LogicError("a coordinate without an axis");
}

int Coordinates::operator[](Axis axis) const {
    Coordinates copy = *this;
    return copy[axis];
}

int Mesh::extent(Axis axis) const { return Coordinates{tp, cp, ep, dp, replica, pp}[axis]; }

Coordinates Mesh::coordinates(int rank) const {
    if (rank < 0 || rank >= ranks()) throw LogicError(fmt::format("rank {} of a mesh of {}", rank, ranks()));
    Coordinates c;
    int rest = rank;
    for (const Axis axis : axes_in_rank_order) {
        c[axis] = rest % extent(axis);
        rest /= extent(axis);
    }
    return c;
}

int Mesh::rank(const Coordinates& c) const {
    int rank = 0;
    for (auto axis = axes_in_rank_order.rbegin(); axis != axes_in_rank_order.rend(); ++axis) {
        if (c[*axis] < 0 || c[*axis] >= extent(*axis))
            throw LogicError(fmt::format("{} coordinate {} of {}", to_string(*axis), c[*axis], extent(*axis)));
        rank = rank * extent(*axis) + c[*axis];
    }
    return rank;
}

std::vector<int> Mesh::group(int rank, const std::vector<Axis>& axes) const {
    Coordinates first = coordinates(rank);
    for (const Axis axis : axes) first[axis] = 0;
    std::vector<int> members{this->rank(first)};
    int stride = 1;
    for (const Axis axis : axes_in_rank_order) {
        if (std::ranges::find(axes, axis) != axes.end()) {
            // Every member so far differs from its copies by a multiple of the axis's stride, larger than all inner
            // ones: appending copy by copy keeps the order.
            const std::size_t inner = members.size();
            for (int i = 1; i < extent(axis); ++i)
                for (std::size_t m = 0; m < inner; ++m) members.push_back(members[m] + i * stride);
        }
        stride *= extent(axis);
    }
    return members;
}

}  // namespace lockstep::plan
