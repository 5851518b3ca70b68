// Explains one run, or a series of runs of one experiment at several rank counts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings.hpp"
#include "record/run_reader.hpp"

namespace lockstep::analysis {

/// Streams one run. Throws IncompleteError when no counted step is there.
RunFindings analyze_run(const record::RunReader& run);

/// The same from records in memory (predictions that are not recorded).
RunFindings analyze_records(const record::RunDescription& run, const step::StepGraph& graph,
                            const std::vector<step::StepRecord>& records);

/// Speed-up and efficiency against the run with the fewest ranks, or `baseline`: E(N) = throughput(N) / (N / N0
/// throughput(N0)). Throws InputError when the runs are not of one series (different experiments, or CPU ranks of
/// different thread counts), naming what differs. E > 1 is flagged. Runs of one rank count are pooled by their median
/// of medians, and said so.
SeriesFindings make_series(std::vector<RunFindings> runs, const std::vector<std::string>& series_ids,
                           std::optional<int> baseline_ranks);

/// Opens and analyses each path, then makes the series. Incomplete runs are analysed as far as they go and reported in
/// `warnings`.
SeriesFindings analyze_series(const std::vector<std::filesystem::path>& runs,
                              const std::optional<std::filesystem::path>& baseline);

}  // namespace lockstep::analysis
