#include "report/results.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "config/document.hpp"

namespace lockstep::report {
namespace {

analysis::RunFindings run_on(int ranks, double step_s) {
    analysis::RunFindings run;
    run.experiment = "quick";
    run.model = "resnet50";
    run.machine = "host";
    run.precision = "fp32";
    run.framework = "pytorch-ddp";
    run.ranks = ranks;
    run.global_batch = 4 * ranks;
    run.throughput = static_cast<double>(run.global_batch) / step_s;
    run.throughput_unit = "images/s";
    run.step_time = {Seconds{step_s}, Seconds{1.1 * step_s}, Seconds{1.2 * step_s}, Seconds{0.9 * step_s},
                     Seconds{1.05 * step_s}};
    run.breakdown.compute = Seconds{0.75 * step_s};
    run.breakdown.exposed_communication = Seconds{0.25 * step_s};
    run.memory.total = Bytes{3e9};
    return run;
}

analysis::SeriesFindings series_of_two() {
    analysis::SeriesFindings series;
    series.points = {run_on(1, 0.5), run_on(2, 0.625)};
    series.points[0].speedup = series.points[0].efficiency = 1.0;
    series.points[1].speedup = 1.6;
    series.points[1].efficiency = 0.8;
    series.scaling = analysis::Scaling::weak;
    return series;
}

TEST(Results, json_holds_the_documented_keys_and_values) {
    const std::string text = results_json({series_of_two()}, {"a warning"}).dump();
    const config::Node json = config::parse_text(text, "results");
    EXPECT_EQ(json.find("schema_version")->text(), "1");
    EXPECT_EQ(json.find("warnings")->items()[0].text(), "a warning");
    const auto& results = json.find("results")->items();
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[1].find("ranks")->text(), "2");
    EXPECT_EQ(results[1].find("origin")->text(), "measured");
    EXPECT_EQ(results[1].find("efficiency")->text(), "0.8");
    EXPECT_EQ(results[1].find("step_time_s")->find("median")->text(), "0.625");
    EXPECT_EQ(results[1].find("throughput")->find("value")->text(), "12.8");
    EXPECT_EQ(results[1].find("breakdown_s")->find("compute")->text(), "0.46875");
    EXPECT_TRUE(results[1].find("mfu")->is_null());
    EXPECT_TRUE(results[1].find("memory_bytes_per_rank")->find("capacity")->is_null());
}

TEST(Results, tables_fit_80_columns_and_have_no_escape_codes_without_color) {
    const std::string text = format_series(series_of_two(), Color::off);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_NE(text.find("80.0 %"), std::string::npos);
    EXPECT_NE(text.find("weak scaling"), std::string::npos);
    EXPECT_NE(format_series(series_of_two(), Color::on).find('\x1b'), std::string::npos);
}

TEST(Results, of_a_point_of_lists_say_which_it_is) {
    analysis::SeriesFindings series = series_of_two();
    for (auto& run : series.points) run.label = "knobs.power_cap=250 W";
    EXPECT_EQ(format_series(series, Color::off)
                  .find("resnet50 on host, fp32, measured, weak scaling: "
                        "knobs.power_cap=250 W\n"),
              0U);
}

TEST(Results, spans_of_some_steps_only_are_said_so_and_spans_of_all_are_not) {
    auto series = series_of_two();
    series.points[0].spans = "every step";
    series.points[1].spans = "every 7th step (recording them in all would cost 1.3 % of a step)";
    const std::string text = format_series(series, Color::off);
    EXPECT_EQ(text.find("spans of every step"), std::string::npos);
    EXPECT_NE(text.find("  2 ranks: spans of every 7th step (recording them in all would cost 1.3 %"),
              std::string::npos)
        << text;
    const config::Node json = config::parse_text(results_json({series}, {}).dump(), "results");
    EXPECT_EQ(json.find("results")->items()[0].find("spans")->text(), "every step");
}

TEST(Results, parts_that_are_nothing_everywhere_are_left_out) {
    const std::string text = format_series(series_of_two(), Color::off);
    EXPECT_NE(text.find("exposed communication"), std::string::npos);
    EXPECT_EQ(text.find("bubble"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::report
