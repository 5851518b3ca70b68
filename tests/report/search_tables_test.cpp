#include <gtest/gtest.h>

#include "report/search_tables.hpp"

namespace lockstep::report {
namespace {

using analysis::Reason;
constexpr double gib = 1073741824;

analysis::SearchFindings two_plans() {
    analysis::SearchFindings findings;
    findings.model = "gpt3-175b";
    findings.machine = "8xdgx-a100-80gb";
    findings.ranks = 64;
    findings.limit = Bytes{76 * gib};
    findings.limit_source = "--memory";
    analysis::RankedPlan best;
    best.plan = "{tp: 8, pp: 8, microbatch: 1}";
    best.run.step_time.median = Seconds{200};
    best.run.memory.total = Bytes{70 * gib};
    best.run.mfu = 0.5;
    analysis::RankedPlan second = best;
    second.plan = "{tp: 16, pp: 4, microbatch: 1}";
    second.run.step_time.median = Seconds{276};
    second.reason = {Reason::Kind::communication, Seconds{80}, Seconds{4}, Seconds{276}, Seconds{200}, "", 16, {}, {}};
    findings.ranking = {best, second};
    findings.front = {best};
    findings.axes = {{"tp",
                      "32",
                      "",
                      std::nullopt,
                      false,
                      {Reason::Kind::memory, {}, {}, {}, {}, "", 0, Bytes{112 * gib}, Bytes{76 * gib}}}};
    findings.space = {"tp: [8, 16, 32]"};
    return findings;
}

/// (80 - 4) of 200 s are 38 %.
TEST(Reasons, say_what_costs_how_much_of_the_best_step) {
    EXPECT_EQ(reason_text(two_plans().ranking[1].reason), "tp 16 crosses nodes: exposed communication +38.0 %");
    EXPECT_EQ(reason_text({Reason::Kind::bubble, Seconds{62}, Seconds{8}, Seconds{200}, Seconds{160}, "", 0, {}, {}}),
              "bubble 31.0 % (best 5.0 %)");
    EXPECT_EQ(reason_text(
                  {Reason::Kind::recomputation, Seconds{24}, Seconds{}, Seconds{124}, Seconds{100}, "full", 0, {}, {}}),
              "recompute full costs +24.0 %");
    EXPECT_EQ(reason_text(two_plans().axes[0].reason), "needs 112 GiB of 76 GiB");
    EXPECT_EQ(reason_text({}), "");
}

TEST(SearchTables, rank_plans_and_end_with_the_line_of_an_experiment) {
    const std::string text = format_search(two_plans(), Color::off);
    EXPECT_NE(text.find("tp 8 pp 8 mb 1"), std::string::npos) << text;
    EXPECT_NE(text.find("+38.0 %"), std::string::npos);
    EXPECT_NE(text.find("50.0 %"), std::string::npos);
    EXPECT_TRUE(text.ends_with("\nplan: {tp: 8, pp: 8, microbatch: 1}\n")) << text;
    EXPECT_EQ(text.find("PARTIAL"), std::string::npos);
}

TEST(SearchTables, say_that_a_search_was_stopped) {
    auto findings = two_plans();
    findings.is_complete = false;
    EXPECT_NE(format_search(findings, Color::off).find("PARTIAL"), std::string::npos);
    EXPECT_NE(search_json({findings}).dump().find("\"status\": \"stopped\""), std::string::npos);
}

}  // namespace
}  // namespace lockstep::report
