#include "plan/shortened.hpp"

#include <algorithm>

namespace lockstep::plan {

std::optional<ShortenedPasses> shortened_passes(const Plan& plan, int least) {
    const int pp = plan.mesh.pp;
    const auto rounded_up = [pp](int passes) { return (passes + pp - 1) / pp * pp; };
    const int fill = plan.split.schedule == Schedule::interleaved ? 3 * pp : 2 * pp;
    const int fewer = rounded_up(std::max({fill, 8, least}));
    const ShortenedPasses passes{fewer, fewer + rounded_up(std::max({pp, 4, least / 2})), plan.accumulation};
    if (plan.accumulation <= passes.fewer + passes.more) return std::nullopt;
    return passes;
}

Plan with_passes(Plan plan, int passes) {
    plan.accumulation = passes;
    return plan;
}

}  // namespace lockstep::plan
