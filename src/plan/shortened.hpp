// A step of many passes told by two of fewer: once a pipeline is full its passes repeat.
#pragma once

#include <optional>

#include "plan/plan.hpp"

namespace lockstep::plan {

/// Passes of the two steps, and of the one they tell.
struct ShortenedPasses {
    int fewer = 0;
    int more = 0;
    int all = 0;

    /// What is linear in the passes, from its values at `fewer` and `more`.
    template <class T>
    T extrapolated(T at_fewer, T at_more) const {
        const double further = static_cast<double>(all - more) / (more - fewer);
        return at_more + further * (at_more - at_fewer);
    }
};

/// Step time, each part of its breakdown and memory are linear in the passes once every stage of the pipeline has begun
/// its first backward pass: 2 pp passes (3 pp interleaved; at least 8) and pp (at least 4) more, rounded up to
/// multiples of pp, which the interleaved schedule wants. `least` raises the first, and half of it the difference,
/// where more is needed to reach the steady state (a host that runs ahead of its device by many passes). None when the
/// plan's own passes are no more than these two together.
std::optional<ShortenedPasses> shortened_passes(const Plan& plan, int least = 0);

/// The plan with another number of passes, and so another global batch.
Plan with_passes(Plan plan, int passes);

}  // namespace lockstep::plan
