// Prints findings, as text or as JSON, and applies --fail-below.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings.hpp"
#include "cli/options.hpp"

namespace lockstep::cli {

void print_results(const std::vector<analysis::SeriesFindings>& series, const std::vector<std::string>& warnings,
                   const Globals& globals);

/// Throws ThresholdError when a point is below "efficiency=0.8" (or speedup=, throughput=); UsageError when the text
/// has another form.
void require_threshold(const std::vector<analysis::SeriesFindings>& series, const std::string& threshold);

}  // namespace lockstep::cli
