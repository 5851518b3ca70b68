// A collective's figures as nccl-tests print them: JSON and a table.
#pragma once

#include <span>
#include <string>

#include "analysis/findings.hpp"
#include "config/json.hpp"

namespace lockstep::report {

/// The "collective" of a result; see results.schema.json. The run has one.
config::Json collective_json(const analysis::RunFindings& run);

/// Whether both are the same collective on one machine: rows of one table.
bool are_one_table(const analysis::SeriesFindings& a, const analysis::SeriesFindings& b);
/// A row for each size and rank count.
std::string collective_table(std::span<const analysis::SeriesFindings> sizes);

}  // namespace lockstep::report
