#include "machine/variation.hpp"

#include <algorithm>

namespace lockstep::machine {

bool Variation::is_changing() const {
    return jitter || std::ranges::any_of(speeds, [](const RankSpeed& entry) {
               return std::ranges::any_of(entry.profile, [](const SpeedChange& c) { return c.from.value > 0; });
           });
}

Variation Variation::within(int ranks, int nodes) const {
    Variation result = *this;
    for (RankSpeed& entry : result.speeds) {
        std::erase_if(entry.ranks, [&](int rank) { return rank >= ranks; });
        std::erase_if(entry.nodes, [&](int node) { return node >= nodes; });
    }
    std::erase_if(result.speeds,
                  [](const RankSpeed& e) { return !e.is_everywhere && e.ranks.empty() && e.nodes.empty(); });
    return result;
}

}  // namespace lockstep::machine
