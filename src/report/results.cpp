#include "report/results.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "config/quantity.hpp"
#include "report/collective.hpp"
#include "report/goodput.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

using analysis::Breakdown;
using analysis::RunFindings;
using analysis::SeriesFindings;

struct Part {
    std::string_view key;
    std::string_view title;
    Seconds Breakdown::*member;
};

constexpr std::array<Part, 8> parts{
    {{"compute", "compute", &Breakdown::compute},
     {"exposed_communication", "exposed communication", &Breakdown::exposed_communication},
     {"wait", "wait for later ranks", &Breakdown::wait},
     {"bubble", "pipeline bubble", &Breakdown::bubble},
     {"optimizer", "optimizer", &Breakdown::optimizer},
     {"launch", "launch", &Breakdown::launch},
     {"input", "input", &Breakdown::input},
     {"idle", "idle", &Breakdown::idle}}};

config::Json number_or_null(const std::optional<double>& value) {
    return value ? config::Json(*value) : config::Json();
}

config::Json breakdown_json(const Breakdown& breakdown) {
    config::Json json = config::Json::object();
    for (const Part& part : parts) json.set(part.key, (breakdown.*part.member).value);
    return json;
}

config::Json memory_json(const RunFindings& run) {
    config::Json json = config::Json::object();
    json.set("parameters", run.memory.parameters.value);
    json.set("gradients", run.memory.gradients.value);
    json.set("optimizer", run.memory.optimizer.value);
    json.set("activations", run.memory.activations.value);
    json.set("workspace", run.memory.workspace.value);
    json.set("total", run.memory.total.value);
    json.set("capacity", run.memory_capacity.value > 0 ? config::Json(run.memory_capacity.value) : config::Json());
    return json;
}

config::Json step_time_json(const RunFindings& run) {
    config::Json json = config::Json::object();
    json.set("median", run.step_time.median.value);
    json.set("p95", run.step_time.p95.value);
    json.set("p99", run.step_time.p99.value);
    config::Json interval = config::Json::array();
    interval.push(run.step_time.interval80_low.value);
    interval.push(run.step_time.interval80_high.value);
    json.set("interval80", interval);
    return json;
}

config::Json texts_json(const std::vector<std::string>& texts) {
    config::Json json = config::Json::array();
    for (const auto& text : texts) json.push(text);
    return json;
}

config::Json run_json(const RunFindings& run, const SeriesFindings& series) {
    config::Json throughput = config::Json::object();
    throughput.set("value", run.throughput);
    throughput.set("unit", run.throughput_unit);
    config::Json json = config::Json::object();
    json.set("experiment", run.experiment);
    json.set("label", run.label);
    json.set("model", run.model);
    json.set("machine", run.machine);
    json.set("precision", run.precision);
    json.set("framework", run.framework);
    json.set("ranks", run.ranks);
    json.set("global_batch", run.global_batch);
    json.set("origin", record::to_string(run.origin));
    json.set("status", record::to_string(run.status));
    json.set("run", run.run.empty() ? config::Json() : config::Json(run.run));
    json.set("counted_steps", run.counted_steps);
    json.set("step_time_s", step_time_json(run));
    json.set("throughput", throughput);
    json.set("scaling", series.scaling == analysis::Scaling::single ? "single"
                        : series.scaling == analysis::Scaling::weak ? "weak"
                                                                    : "strong");
    json.set("speedup", number_or_null(run.speedup));
    json.set("efficiency", number_or_null(run.efficiency));
    json.set("seeds", run.seeds);
    json.set("passes", run.passes.empty() ? config::Json() : config::Json(run.passes));
    json.set("spans", run.spans);
    json.set("breakdown_s", breakdown_json(run.breakdown));
    json.set("breakdown_p95_s", breakdown_json(run.breakdown_p95));
    json.set("overlapped_share", run.overlapped_share);
    json.set("memory_bytes_per_rank", memory_json(run));
    json.set("mfu", number_or_null(run.mfu));
    json.set("hfu", number_or_null(run.hfu));
    json.set("peak_flops", run.peak ? config::Json(run.peak->value) : config::Json());
    json.set("peak_source", run.peak ? config::Json(run.peak_source) : config::Json());
    if (run.collective) json.set("collective", collective_json(run));
    if (run.goodput) json.set("goodput", goodput_json(run));
    json.set("warnings", texts_json(run.warnings));
    return json;
}

std::string ranks_text(const RunFindings& run) {
    return fmt::format("{} rank{}", run.ranks, run.ranks == 1 ? "" : "s");
}

std::string colored(const std::string& text, const char* code, Color color) {
    return color == Color::on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string heading(const SeriesFindings& series, Color color) {
    const RunFindings& run = series.points.front();
    const char* scaling = series.scaling == analysis::Scaling::weak     ? ", weak scaling"
                          : series.scaling == analysis::Scaling::strong ? ", strong scaling"
                                                                        : "";
    const std::string origin = run.origin == record::Origin::rehearsed
                                   ? "rehearsed on a test double of a GPU (no measurement)"
                                   : std::string(record::to_string(run.origin));
    const std::string what = run.collective ? std::string(to_string(run.collective->kind)) : run.model;
    const std::string text = fmt::format("{} on {}, {}, {}{}{}{}", what, run.machine, run.precision, origin, scaling,
                                         run.label.empty() ? "" : ": ", run.label);
    return colored(wrapped(text, "", 80), "1", color);
}

std::string scaling_table(const SeriesFindings& series) {
    Table table({{"ranks"},
                 {"step"},
                 {"p95"},
                 {series.points.front().throughput_unit},
                 {"speed-up"},
                 {"efficiency"},
                 {"MFU"},
                 {"memory"}});
    for (const RunFindings& run : series.points)
        table.add({std::to_string(run.ranks), config::format(run.step_time.median), config::format(run.step_time.p95),
                   fmt::format("{:.4g}", run.throughput), run.speedup ? fmt::format("{:.2f}", *run.speedup) : "-",
                   run.efficiency ? fmt::format("{:.1f} %", 100 * *run.efficiency) : "-",
                   run.mfu ? fmt::format("{:.1f} %", 100 * *run.mfu) : "-", config::format(run.memory.total)});
    return table.text("  ");
}

/// Parts that are nothing at every rank count are left out.
std::string breakdown_table(const SeriesFindings& series) {
    std::vector<Table::Column> columns{{"where a step goes", Align::left}};
    for (const RunFindings& run : series.points) {
        columns.push_back({ranks_text(run)});
        columns.push_back({"share"});
        columns.push_back({"p95"});
    }
    Table table(columns);
    bool has_rows = false;
    for (const Part& part : parts) {
        std::vector<std::string> cells{std::string(part.title)};
        bool is_there = false;
        for (const RunFindings& run : series.points) {
            const Seconds value = run.breakdown.*part.member;
            const double total = run.breakdown.total().value;
            is_there = is_there || value.value > 0;
            cells.push_back(config::format(value));
            cells.push_back(total > 0 ? fmt::format("{:.1f} %", 100 * value.value / total) : "-");
            cells.push_back(config::format(run.breakdown_p95.*part.member));
        }
        has_rows = has_rows || is_there;
        if (is_there) table.add(std::move(cells));
    }
    return has_rows ? table.text("  ") : "";
}

/// Of predictions and CPUs all spans are recorded, at no cost; that there are none is a warning.
bool is_worth_saying(const std::string& spans) { return !spans.empty() && spans != "every step" && spans != "no step"; }

std::string remarks(const SeriesFindings& series, Color color) {
    std::string text;
    const auto warn = [&](const std::string& message) {
        const std::string_view mark = "  warning: ";
        text += colored(std::string(mark), "33", color) + wrapped(message, mark, 80).substr(mark.size());
    };
    for (const RunFindings& run : series.points)
        for (const auto& warning : run.warnings)
            warn(series.points.size() > 1 ? ranks_text(run) + ": " + warning : warning);
    for (const auto& warning : series.warnings) warn(warning);
    const auto of_run = [&](const RunFindings& run) { return series.points.size() > 1 ? ranks_text(run) + ": " : ""; };
    for (const RunFindings& run : series.points) {
        if (run.seeds > 1)
            text += wrapped(fmt::format("{}{} steps of {} seeds, 80 % of them from {} to {}", of_run(run),
                                        run.counted_steps, run.seeds, config::format(run.step_time.interval80_low),
                                        config::format(run.step_time.interval80_high)),
                            "  ", 80);
        if (!run.passes.empty()) text += wrapped(of_run(run) + run.passes, "  ", 80);
    }
    for (const RunFindings& run : series.points)
        if (is_worth_saying(run.spans)) text += wrapped(of_run(run) + "spans of " + run.spans, "  ", 80);
    if (series.points.front().peak) text += wrapped("MFU against " + series.points.front().peak_source, "  ", 80);
    return text;
}

std::string format_collectives(std::span<const SeriesFindings> sizes, Color color) {
    std::string text = heading(sizes.front(), color) + collective_table(sizes);
    for (const SeriesFindings& series : sizes) text += remarks(series, color);
    return text;
}

}  // namespace

config::Json results_json(const std::vector<SeriesFindings>& series, const std::vector<std::string>& warnings) {
    config::Json all_warnings = texts_json(warnings);
    config::Json results = config::Json::array();
    for (const auto& one : series) {
        for (const auto& warning : one.warnings) all_warnings.push(warning);
        for (const auto& run : one.points) results.push(run_json(run, one));
    }
    config::Json json = config::Json::object();
    json.set("schema_version", 1);
    json.set("warnings", all_warnings);
    json.set("results", results);
    return json;
}

std::string format_all(const std::vector<SeriesFindings>& series, Color color) {
    std::string text;
    for (std::size_t first = 0; first < series.size();) {
        std::size_t last = first + 1;
        while (last < series.size() && are_one_table(series[first], series[last])) ++last;
        const bool is_collective = series[first].points.front().collective.has_value();
        if (is_collective)
            text += format_collectives(std::span(series).subspan(first, last - first), color);
        else
            text += format_series(series[first], color);
        text += "\n";
        first = last;
    }
    return text;
}

config::Json result_json(const RunFindings& run) { return run_json(run, {}); }

std::string format_series(const SeriesFindings& series, Color color) {
    if (series.points.front().collective) return format_collectives(std::span(&series, 1), color);
    // Wide series: breakdowns of three rank counts fit 80 columns, so more go below one another.
    std::string text = heading(series, color) + scaling_table(series);
    constexpr std::size_t most_beside = 2;
    for (std::size_t first = 0; first < series.points.size(); first += most_beside) {
        SeriesFindings some = series;
        some.points.assign(
            series.points.begin() + static_cast<long>(first),
            series.points.begin() + static_cast<long>(std::min(first + most_beside, series.points.size())));
        if (const std::string table = breakdown_table(some); !table.empty()) text += "\n" + table;
    }
    if (const std::string table = format_goodput(series); !table.empty()) text += "\n" + table;
    return text + remarks(series, color);
}

}  // namespace lockstep::report
