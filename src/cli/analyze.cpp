// lockstep analyze: explains recorded runs.
#include "analysis/analyze.hpp"

#include <algorithm>

#include "cli/command.hpp"
#include "cli/results.hpp"

namespace lockstep::cli {

namespace {

ExitCode analyze(const Parsed& parsed) {
    std::vector<std::filesystem::path> runs(parsed.words.begin(), parsed.words.end());
    std::optional<std::filesystem::path> baseline;
    if (const auto path = parsed.value("baseline")) baseline = *path;
    const std::vector series = {analysis::analyze_series(runs, baseline)};
    print_results(series, {}, parsed.globals);
    if (const auto threshold = parsed.value("fail-below")) require_threshold(series, *threshold);
    const auto& points = series.front().points;
    const bool is_incomplete = std::any_of(points.begin(), points.end(),
                                           [](const auto& run) { return run.status != record::Status::complete; });
    return is_incomplete ? ExitCode::incomplete_data : ExitCode::ok;
}

}  // namespace

Command analyze_command() {
    return {"analyze",
            {.usage = "analyze RUN...",
             .about = "explain one run or a scaling series",
             .options = {{"baseline", "RUN", "the run that efficiency is measured against"},
                         {"fail-below", "NAME=X", "exit 4 when efficiency, speedup or throughput is below X"}},
             .least_words = 1,
             .most_words = 10000},
            analyze};
}

}  // namespace lockstep::cli
