#include "report/search_tables.hpp"

#include <fmt/format.h>

#include <cctype>

#include "config/quantity.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

using analysis::RankedPlan;
using analysis::SearchFindings;

constexpr double gib = 1073741824;

/// "tp 8 pp 8 zero 1": a plan without what only a parser needs.
std::string short_plan(const std::string& plan) {
    std::string text;
    for (const char c : plan)
        if (c != '{' && c != '}' && c != ':' && c != ',') text += c;
    for (const auto& [long_form, short_form] :
         {std::pair<std::string, std::string>{"sequence_parallel true", "sp"}, {"microbatch", "mb"}})
        if (const auto at = text.find(long_form); at != std::string::npos)
            text.replace(at, long_form.size(), short_form);
    return text.empty() ? "(defaults)" : text;
}

/// Four digits: plans are close to each other.
std::string seconds(Seconds time) { return fmt::format("{:.4g} s", time.value); }

std::string slower(Seconds time, Seconds best) {
    const double more = 100 * (time / best - 1);
    return more < 0.05 ? "" : fmt::format("+{:.1f} %", more);
}

std::string plans_table(const std::vector<RankedPlan>& plans, Seconds best) {
    Table table({{"", Align::right},
                 {"plan", Align::left},
                 {"step time"},
                 {""},
                 {"throughput"},
                 {"MFU"},
                 {"GiB"},
                 {"why slower", Align::left}});
    int place = 0;
    for (const RankedPlan& plan : plans)
        table.add({fmt::format("{}", ++place), short_plan(plan.plan), seconds(plan.run.step_time.median),
                   slower(plan.run.step_time.median, best), fmt::format("{:.4g}", plan.run.throughput),
                   plan.run.mfu ? fmt::format("{:.1f} %", 100 * *plan.run.mfu) : "",
                   fmt::format("{:.1f}", plan.run.memory.total.value / gib), reason_text(plan.reason)});
    return table.text("  ");
}

std::string axes_table(const SearchFindings& findings, Seconds best) {
    Table table({{"axis", Align::left}, {"value"}, {"best step"}, {""}, {"why", Align::left}});
    std::string axis;
    for (const analysis::AxisValue& one : findings.axes) {
        const bool is_best = one.time && one.reason.kind == analysis::Reason::Kind::none;
        table.add({one.axis == axis ? "" : one.axis, one.value,
                   !one.time ? "" : (one.is_estimate ? "~" : "") + seconds(*one.time),
                   one.time ? slower(*one.time, best) : "",
                   is_best ? "the best plan's, or no slower"
                   : !one.time && one.reason.kind == analysis::Reason::Kind::none
                       ? "not reached, or beaten by its floors"
                       : reason_text(one.reason)});
        axis = one.axis;
    }
    return table.text("  ");
}

std::string counts_text(const SearchFindings& findings) {
    const analysis::SearchCounts& n = findings.counts;
    const auto number = [](std::int64_t count) { return config::format_count(count); };
    std::string text =
        fmt::format("{} combinations, {} plans; {} need more than {} ({}); ", number(n.combinations), number(n.plans),
                    number(n.above_memory), config::format(findings.limit), findings.limit_source);
    if (findings.is_exhaustive)
        text += fmt::format("all others simulated, {} plans", number(n.simulated));
    else
        text +=
            fmt::format("{} beaten by their floors, {} estimated from {} small simulated steps, {} simulated op by op",
                        number(n.above_bound), number(n.estimated), number(n.small_graphs), number(n.simulated));
    if (!findings.why_exhaustive.empty()) text += fmt::format(" (no estimates: {})", findings.why_exhaustive);
    if (n.left_within_margin > 0)
        text += fmt::format("; {} more have estimates within {:.0f} % of the best", number(n.left_within_margin),
                            100 * findings.margin);
    return text;
}

}  // namespace

std::string format_search(const SearchFindings& findings, Color color) {
    const RankedPlan& best = findings.ranking.front();
    const Seconds best_time = best.run.step_time.median;
    const auto title = [color](const std::string& text) {
        return color == Color::on ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : text + "\n";
    };
    std::string text = title(fmt::format("{} on {} ranks of {}, {}, global batch {}", findings.model, findings.ranks,
                                         findings.machine, findings.precision, findings.global_batch));
    if (!findings.is_complete) text += "  PARTIAL: the search was stopped; this is what it had found\n";
    text += "\n" + title("best plans (" + findings.throughput_unit + ")") + plans_table(findings.ranking, best_time);
    text += "\n" + title("Pareto front of time and memory") + plans_table(findings.front, best_time);
    if (!findings.axes.empty())
        text += "\n" + title("best plan with each value (~: estimated)") + axes_table(findings, best_time);
    text += "\n" + wrapped("searched " + fmt::format("{}", fmt::join(findings.space, " ")), "  ", 100);
    text += wrapped(counts_text(findings), "  ", 100);
    text += fmt::format("\nplan: {}\n", best.plan);
    return text;
}

}  // namespace lockstep::report
