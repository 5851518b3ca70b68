#include "report/goodput.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "report/results.hpp"

namespace lockstep::report {
namespace {

analysis::SeriesFindings series_with_failures() {
    experiment::Failures failures;
    failures.mtbf_per_gpu = Seconds{50000 * 3600.0};
    failures.checkpoint = experiment::CheckpointTime{30_s};
    failures.restart = 300_s;
    failures.work = Seconds{10 * 86400.0};
    analysis::SeriesFindings series;
    for (const int ranks : {1024, 16384}) {
        analysis::RunFindings run;
        run.ranks = ranks;
        run.throughput = 2 * ranks;
        run.throughput_unit = "sequences/s";
        run.goodput = analysis::find_goodput(failures, ranks, 6_s, {}, 1);
        series.points.push_back(run);
    }
    return series;
}

TEST(GoodputReport, tables_fit_80_columns_and_have_a_row_for_each_rank_count) {
    const std::string text = format_goodput(series_with_failures());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    for (const char* word : {"Young", "Daly", "lost work", "restarts", "sequences/s", "16384 ranks: a failure"})
        EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
    analysis::SeriesFindings without = series_with_failures();
    for (auto& run : without.points) run.goodput.reset();
    EXPECT_EQ(format_goodput(without), "");
}

TEST(GoodputReport, effective_throughput_is_throughput_times_goodput) {
    const auto series = series_with_failures();
    const auto json = config::parse_text(results_json({series}, {}).dump(), "results");
    const auto& found = *json.find("results")->items()[1].find("goodput");
    EXPECT_NEAR(std::stod(found.find("effective_throughput")->find("value")->text()),
                series.points[1].throughput * series.points[1].goodput->simulated.mean, 1e-6);
    EXPECT_NEAR(std::stod(found.find("failures_per_day")->text()), 24.0 * 16384 / 50000, 1e-9);
}

}  // namespace
}  // namespace lockstep::report
