// The key `variation` of an experiment: how ranks differ from what their device's file says, for predictions.
#pragma once

#include "config/document.hpp"
#include "machine/variation.hpp"

namespace lockstep::experiment {

/// Reads, where it is there,
///
///     variation:
///       jitter: {distribution: lognormal, cv: 0.03}    # of each kernel's time; normal, lognormal, gamma, exponential
///       stragglers: [{rank: 3, speed: 0.8}, {nodes: [1, 2], speed: 0.95}]
///       throttling: [{nodes: [0], profile: [[0 s, 1], [20 s, 0.7]]}]   # without ranks and nodes: all
///
/// Ranks and nodes that the largest world of `ranks` hasn't are refused; smaller worlds just don't have them. A node is
/// only known to be too high where the machine is known.
machine::Variation read_variation(config::Object& object, int most_ranks);

}  // namespace lockstep::experiment
