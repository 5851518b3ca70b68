// The mesh of ranks: a rank's place along each axis of parallelism.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep::plan {

/// Axes in rank order, innermost (fastest varying) first.
enum class Axis { tp, cp, ep, dp, pp };
std::string_view to_string(Axis axis);

struct Coordinates {
    int tp = 0, cp = 0, ep = 0, dp = 0, pp = 0;
    int& operator[](Axis axis);
    int operator[](Axis axis) const;
};

struct Mesh {
    int tp = 1, cp = 1, ep = 1, dp = 1, pp = 1;

    int extent(Axis axis) const;
    int ranks() const { return tp * cp * ep * dp * pp; }
    /// rank = tp + TP (cp + CP (ep + EP (dp + DP pp)))
    Coordinates coordinates(int rank) const;
    int rank(const Coordinates& c) const;
    /// The ranks that differ from `rank` in the given axes only (itself included), ascending.
    std::vector<int> group(int rank, const std::vector<Axis>& axes) const;
};

}  // namespace lockstep::plan
