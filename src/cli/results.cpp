#include "cli/results.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "report/results.hpp"

namespace lockstep::cli {

void print_results(const std::vector<analysis::SeriesFindings>& series, const std::vector<std::string>& warnings,
                   const Globals& globals) {
    if (globals.json) {
        fmt::print("{}\n", report::results_json(series, warnings).dump());
        return;
    }
    const auto color = use_color(globals.color) ? report::Color::on : report::Color::off;
    fmt::print("{}", report::format_all(series, color));
    for (const auto& warning : warnings) fmt::print(stderr, "lockstep: warning: {}\n", warning);
}

namespace {

struct Threshold {
    std::string name;
    double value = 0;
};

Threshold parse_threshold(const std::string& text) {
    const std::size_t equals = text.find('=');
    Threshold threshold{text.substr(0, equals), 0};
    const bool is_known =
        threshold.name == "efficiency" || threshold.name == "speedup" || threshold.name == "throughput";
    if (equals != std::string::npos && is_known) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, threshold.value);
        if (error == std::errc() && stop == end && threshold.value > 0) return threshold;
    }
    throw UsageError(fmt::format("--fail-below wants efficiency=0.8, speedup=3.5 or throughput=1000, got '{}'", text));
}

std::optional<double> value_of(const analysis::RunFindings& run, const std::string& name) {
    if (name == "efficiency") return run.efficiency;
    if (name == "speedup") return run.speedup;
    return run.throughput;
}

}  // namespace

void require_threshold(const std::vector<analysis::SeriesFindings>& series, const std::string& text) {
    const Threshold threshold = parse_threshold(text);
    std::string failed;
    std::size_t compared = 0;
    for (const auto& one : series)
        for (const auto& run : one.points) {
            const auto value = value_of(run, threshold.name);
            if (!value) continue;
            ++compared;
            if (*value < threshold.value)
                failed +=
                    fmt::format("{}{} on {} ranks: {:.3g}", failed.empty() ? "" : "; ", run.model, run.ranks, *value);
        }
    if (compared == 0)
        throw IncompleteError(
            fmt::format("--fail-below {}: no run has a {} (it needs a series of rank counts)", text, threshold.name));
    if (!failed.empty())
        throw ThresholdError(fmt::format("below {} = {:g}: {}", threshold.name, threshold.value, failed));
}

}  // namespace lockstep::cli
