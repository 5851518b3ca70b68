// What failures leave of the throughput, as JSON and as tables.
#pragma once

#include <string>

#include "analysis/findings.hpp"
#include "config/json.hpp"

namespace lockstep::report {

/// The "goodput" of a result; see results.schema.json. The run has one.
config::Json goodput_json(const analysis::RunFindings& run);

/// Failures, intervals between checkpoints, goodput and where the rest went, by rank count; "" when no run has one.
std::string format_goodput(const analysis::SeriesFindings& series);

}  // namespace lockstep::report
