// The mesh of ranks: a rank's place along each axis of parallelism.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep::plan {

/// Axes in rank order, innermost (fastest varying) first.
/// dp holds what one copy of the optimizer's shards is spread over; replica repeats it (hybrid sharding; 1 otherwise).
enum class Axis { tp, cp, ep, dp, replica, pp };
std::string_view to_string(Axis axis);

struct Coordinates {
    int tp = 0, cp = 0, ep = 0, dp = 0, replica = 0, pp = 0;
    int& operator[](Axis axis);
    int operator[](Axis axis) const;
};

struct Mesh {
    int tp = 1, cp = 1, ep = 1, dp = 1, replica = 1, pp = 1;

    int extent(Axis axis) const;
    int ranks() const { return tp * cp * ep * dp * replica * pp; }
    /// Ranks that take different samples: dp x replica x ep.
    int replicas() const { return dp * replica * ep; }
    /// rank = tp + TP (cp + CP (ep + EP (dp + DP (replica + REPLICA pp))))
    Coordinates coordinates(int rank) const;
    int rank(const Coordinates& c) const;
    /// The ranks that differ from `rank` in the given axes only (itself included), ascending.
    std::vector<int> group(int rank, const std::vector<Axis>& axes) const;
};

}  // namespace lockstep::plan
