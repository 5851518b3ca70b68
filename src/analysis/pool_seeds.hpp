// Predictions of one experiment by several seeds, told as one: how far its steps are apart.
#pragma once

#include <vector>

#include "analysis/findings.hpp"

namespace lockstep::analysis {

/// Quantiles over the counted steps of all seeds; interval80 is from the 10th to the 90th percentile of them,
/// throughput follows from the median, each part of the breakdown is the mean of the seeds' and its p95 the largest of
/// their p95s. The rest is the first's. Throws LogicError without runs.
RunFindings pool_seeds(const std::vector<RunFindings>& runs);

}  // namespace lockstep::analysis
