// When the storage of a tensor holds something.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// When a storage holds something in one step of a rank: closed intervals of positions in issue order, ascending and
/// apart. Long accumulations are folded: passes that repeat the one before are left out.
struct Life {
    struct Interval {
        std::int32_t begin = 0, end = 0;
    };
    std::vector<Interval> intervals;  ///< empty: never touched, or a view
};
bool overlap(const Life& a, const Life& b);

/// One copy (Tensor::slots) of a storage holds something.
struct CopyLife {
    TensorId tensor;
    std::int32_t slot = 0;
    std::int32_t begin = 0, end = 0;  ///< positions in issue order, both included
};
struct Lives {
    std::vector<CopyLife> copies;     ///< those of one copy are apart
    std::vector<std::int32_t> issue;  ///< op number at each position
    bool is_folded = false;           ///< passes that repeat the one before are left out
};

/// By tensor: a storage lives while any of its copies does.
std::vector<Life> lives_of_storages(const StepGraph& graph, const Lives& lives);

/// Sorts intervals (of anything with begin and end) and joins those that meet.
template <class Interval>
void join(std::vector<Interval>& all) {
    if (all.size() < 2) return;
    std::sort(all.begin(), all.end(), [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i].begin <= all[kept].end)
            all[kept].end = std::max(all[kept].end, all[i].end);
        else
            all[++kept] = all[i];
    }
    all.resize(kept + 1);
}

}  // namespace lockstep::step
