// The best plans of a search, as text and as the JSON that scripts rely on.
#pragma once

#include <string>
#include <vector>

#include "analysis/search_findings.hpp"
#include "config/json.hpp"
#include "report/results.hpp"

namespace lockstep::report {

/// The ranking (plan, step time, throughput, MFU, memory, why slower), the Pareto front of time against memory, the
/// best plan with each value of each axis, what was discarded, and the best plan as a line of an experiment.
std::string format_search(const analysis::SearchFindings& findings, Color color);

/// {"schema_version": 1, "warnings": [], "results": [{"experiment", "label", "search": {...}, "ranking": [...],
/// "front":
/// [...], "axes": [...]}]}, one result for each point of the experiment; see search.schema.json. Each ranked plan has
/// its prediction as `simulate --json` prints it.
config::Json search_json(const std::vector<analysis::SearchFindings>& searches);

/// "bubble 31 % (best 4 %)"; "" for the best plan.
std::string reason_text(const analysis::Reason& reason);

}  // namespace lockstep::report
