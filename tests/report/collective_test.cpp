#include "report/collective.hpp"

#include <gtest/gtest.h>

#include "config/document.hpp"
#include "report/results.hpp"

namespace lockstep::report {
namespace {

analysis::SeriesFindings size_of(double bytes) {
    analysis::RunFindings run;
    run.model = "all_reduce of some size";
    run.machine = "somewhere";
    run.precision = "fp32";
    run.ranks = 4;
    run.collective = {CollectiveKind::all_reduce,   DType::fp32, Bytes{bytes}, 10_ms, Bandwidth{bytes / 0.01},
                      Bandwidth{1.5 * bytes / 0.01}};
    run.throughput = 1.5 * bytes / 0.01 / 1e9;
    run.throughput_unit = "GB/s busbw";
    run.step_time = {10_ms, 11_ms, 12_ms, 10_ms, 10_ms};
    return {{run}, analysis::Scaling::single, 4, {}};
}

TEST(CollectiveReport, sizes_of_one_collective_are_rows_of_one_table) {
    auto gather = size_of(1e9);
    gather.points[0].collective->kind = CollectiveKind::all_gather;
    const std::string text = format_all({size_of(1e6), size_of(1e9), gather}, Color::off);
    std::size_t tables = 0;
    for (std::size_t at = text.find("busbw"); at != std::string::npos; at = text.find("busbw", at + 1)) ++tables;
    EXPECT_EQ(tables, 2U) << text;
    EXPECT_NE(text.find("all_reduce on somewhere, fp32"), std::string::npos) << text;
    EXPECT_NE(text.find("1,000,000,000"), std::string::npos);
    EXPECT_NE(text.find("150"), std::string::npos);  // 1 GB in 10 ms, 2 x 3/4
}

TEST(CollectiveReport, json_has_bytes_seconds_and_both_bandwidths) {
    const auto json = config::parse_text(results_json({size_of(1e9)}, {}).dump(), "results");
    const config::Node& found = *json.find("results")->items()[0].find("collective");
    EXPECT_EQ(found.find("kind")->text(), "all_reduce");
    EXPECT_EQ(std::stod(found.find("buffer_bytes")->text()), 1e9);
    EXPECT_EQ(std::stod(found.find("busbw_bytes_per_s")->text()), 1.5e11);
}

}  // namespace
}  // namespace lockstep::report
