// Findings as the JSON that scripts rely on and as tables for the terminal.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings.hpp"
#include "config/json.hpp"

namespace lockstep::report {

enum class Color { off, on };

/// {"schema_version": 1, "warnings": [...], "results": [...]}; see results.schema.json.
config::Json results_json(const std::vector<analysis::SeriesFindings>& series,
                          const std::vector<std::string>& warnings);

/// One of `results`, of a run that is no part of a series.
config::Json result_json(const analysis::RunFindings& run);

/// At most 80 columns: throughput, speed-up, efficiency by rank count; breakdown with p95; memory; warnings.
std::string format_series(const analysis::SeriesFindings& series, Color color);

/// All series one below the other; those of one collective in several sizes as one table.
std::string format_all(const std::vector<analysis::SeriesFindings>& series, Color color);

}  // namespace lockstep::report
