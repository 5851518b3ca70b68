// The synthetic routing of tokens to experts: who is wanted by how many.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "step/tensor.hpp"

namespace lockstep::step {

/// Of each sample, a share q of the positions, evenly spread, is the crowd: all its tokens go to the same `top_k`
/// experts. All others, counted without the crowd, come in rounds of `experts` positions: in a round each token takes
/// `top_k` neighbours in an order of the experts that is drawn for the round, so that each expert gets exactly top_k
/// tokens. The fullest experts then get 1 + imbalance times the mean, with q = imbalance / (experts / top_k - 1). A
/// token's experts are a function of its place in the global batch, whatever the split.
struct Routing {
    std::int64_t experts = 0, top_k = 1;
    double imbalance = 0;

    /// The part q of the positions.
    double crowd_share() const {
        if (imbalance <= 0 || experts <= top_k) return 0;
        return imbalance / (static_cast<double>(experts) / static_cast<double>(top_k) - 1);
    }
    /// Positions of the crowd among the first `positions`.
    std::int64_t crowd_before(std::int64_t positions) const {
        return static_cast<std::int64_t>(std::floor(static_cast<double>(positions) * crowd_share()));
    }
    bool is_crowd(std::int64_t position) const { return crowd_before(position + 1) > crowd_before(position); }
};

/// The most tokens that any expert can get of one sample's positions in these runs.
std::int64_t most_rows(const Routing& routing, std::span<const IndexRun> positions);

}  // namespace lockstep::step
