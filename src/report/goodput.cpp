#include "report/goodput.hpp"

#include <fmt/format.h>

#include "config/quantity.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

using analysis::Goodput;
using analysis::RunFindings;
using analysis::TimeShares;

config::Json shares_json(const TimeShares& shares) {
    config::Json json = config::Json::object();
    json.set("useful", shares.useful);
    json.set("checkpoints", shares.checkpoints);
    json.set("lost_work", shares.lost_work);
    json.set("downtime", shares.downtime);
    return json;
}

config::Json intervals_json(const Goodput& goodput) {
    config::Json json = config::Json::object();
    json.set("young", goodput.young.value);
    json.set("daly", goodput.daly.value);
    json.set("best", goodput.best.time.value);
    json.set("best_low", goodput.best_low.value);
    json.set("best_high", goodput.best_high.value);
    json.set("used", goodput.used.time.value);
    return json;
}

config::Json simulated_json(const Goodput& goodput) {
    config::Json interval = config::Json::array();
    interval.push(goodput.simulated.low95);
    interval.push(goodput.simulated.high95);
    config::Json json = config::Json::object();
    json.set("expected", goodput.used.shares.useful);
    json.set("simulated", goodput.simulated.mean);
    json.set("interval95", interval);
    json.set("run_p5", goodput.simulated.run_p5);
    json.set("run_p95", goodput.simulated.run_p95);
    json.set("runs", goodput.simulated.runs);
    json.set("work_s", goodput.work.value);
    return json;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string interval_table(const analysis::SeriesFindings& series) {
    Table table({{"ranks"}, {"failures/day"}, {"Young"}, {"Daly"}, {"simulated"}, {"used"}, {"steps"}});
    for (const RunFindings& run : series.points) {
        if (!run.goodput) continue;
        const Goodput& goodput = *run.goodput;
        table.add({std::to_string(run.ranks), fmt::format("{:.3g}", goodput.failures_per_day),
                   config::format(goodput.young), config::format(goodput.daly), config::format(goodput.best.time),
                   config::format(goodput.used.time), config::format_count(goodput.used.steps)});
    }
    return table.text("  ");
}

std::string share_table(const analysis::SeriesFindings& series) {
    Table table({{"ranks"},
                 {"goodput"},
                 {"expected"},
                 {"checkpoints"},
                 {"lost work"},
                 {"restarts"},
                 {series.points.front().throughput_unit}});
    for (const RunFindings& run : series.points) {
        if (!run.goodput) continue;
        const TimeShares& lost = run.goodput->shares;
        table.add({std::to_string(run.ranks), percent(run.goodput->simulated.mean),
                   percent(run.goodput->used.shares.useful), percent(lost.checkpoints), percent(lost.lost_work),
                   percent(lost.downtime), fmt::format("{:.4g}", run.throughput * run.goodput->simulated.mean)});
    }
    return table.text("  ");
}

std::string remark(const RunFindings& run) {
    const Goodput& goodput = *run.goodput;
    const analysis::SimulatedGoodput& simulated = goodput.simulated;
    const std::string size =
        goodput.checkpoint_bytes.value > 0 ? fmt::format(" ({} a rank)", config::format(goodput.checkpoint_bytes)) : "";
    return wrapped(
        fmt::format(
            "{} ranks: a failure every {}, checkpoints of {}{}, {} to come back; {} runs of {} of work: goodput "
            "{:.2f} to {:.2f} % (95 % interval of the mean), nine of ten runs {:.1f} to {:.1f} %; intervals from "
            "{} to {} are as good as the best",
            run.ranks, config::format(goodput.job.mtbf), config::format(goodput.job.checkpoint), size,
            config::format(goodput.job.downtime), simulated.runs, config::format(goodput.work), 100 * simulated.low95,
            100 * simulated.high95, 100 * simulated.run_p5, 100 * simulated.run_p95, config::format(goodput.best_low),
            config::format(goodput.best_high)),
        "  ", 80);
}

}  // namespace

config::Json goodput_json(const RunFindings& run) {
    const Goodput& goodput = *run.goodput;
    config::Json throughput = config::Json::object();
    throughput.set("value", run.throughput * goodput.simulated.mean);
    throughput.set("unit", run.throughput_unit);
    config::Json json = config::Json::object();
    json.set("mtbf_s", goodput.job.mtbf.value);
    json.set("failures_per_day", goodput.failures_per_day);
    json.set("checkpoint_s", goodput.job.checkpoint.value);
    json.set("checkpoint_bytes_per_rank",
             goodput.checkpoint_bytes.value > 0 ? config::Json(goodput.checkpoint_bytes.value) : config::Json());
    json.set("background_s", goodput.job.background.value);
    json.set("downtime_s", goodput.job.downtime.value);
    json.set("interval_s", intervals_json(goodput));
    json.set("steps_between_checkpoints", goodput.used.steps);
    json.set("goodput", simulated_json(goodput));
    json.set("shares", shares_json(goodput.shares));
    json.set("expected_shares", shares_json(goodput.used.shares));
    json.set("effective_throughput", throughput);
    return json;
}

std::string format_goodput(const analysis::SeriesFindings& series) {
    std::string remarks;
    for (const RunFindings& run : series.points)
        if (run.goodput) remarks += remark(run);
    if (remarks.empty()) return "";
    return "  goodput under failures: work between checkpoints\n" + interval_table(series) +
           "\n  what is left (simulated; expected by formula), and what the rest goes to\n" + share_table(series) +
           remarks;
}

}  // namespace lockstep::report
