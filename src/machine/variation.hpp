// How the ranks of a world differ from what their device's file says: slow ones, throttling, jitter.
#pragma once

#include <optional>
#include <vector>

#include "base/units.hpp"
#include "fit/distribution.hpp"

namespace lockstep::machine {

/// From `from` on (since the beginning of the run) kernels run at `speed` times their normal speed.
struct SpeedChange {
    Seconds from;
    double speed = 1;
    bool operator==(const SpeedChange&) const = default;
};

/// Ranks whose kernels run at other speeds: stragglers (one change, at 0) or devices that throttle (a profile).
struct RankSpeed {
    std::vector<int> ranks;
    std::vector<int> nodes;            ///< all ranks of these
    bool is_everywhere = false;        ///< all ranks of the world
    std::vector<SpeedChange> profile;  ///< ascending; before the first the speed is 1
};

/// Each kernel takes its time multiplied by a random factor of mean 1, drawn for each rank, step and op anew.
struct Jitter {
    fit::Family family = fit::Family::lognormal;
    double cv = 0;  ///< standard deviation over mean
};

struct Variation {
    std::vector<RankSpeed> speeds;
    std::optional<Jitter> jitter;

    /// Whether steps differ from one another: what one of them tells is not told of the others.
    bool is_changing() const;
    /// Without the ranks and nodes that a world of so many hasn't.
    Variation within(int ranks, int nodes) const;
};

}  // namespace lockstep::machine
