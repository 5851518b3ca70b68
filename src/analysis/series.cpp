#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/analyze.hpp"
#include "base/error.hpp"
#include "config/document.hpp"
#include "fit/quantiles.hpp"

namespace lockstep::analysis {

namespace {

/// The keys in which two canonical experiments differ.
std::vector<std::string> differing_keys(const std::string& a, const std::string& b) {
    const config::Node left = config::parse_text(a, "first run");
    const config::Node right = config::parse_text(b, "other run");
    std::set<std::string> keys;
    for (const auto* node : {&left, &right})
        for (const auto& entry : node->entries()) keys.insert(entry.key);
    std::vector<std::string> result;
    for (const auto& key : keys) {
        const config::Node* x = left.find(key);
        const config::Node* y = right.find(key);
        if (x == nullptr || y == nullptr || x->canonical() != y->canonical()) result.push_back(key);
    }
    return result;
}

void require_one_series(const std::vector<RunFindings>& runs, const std::vector<std::string>& ids) {
    for (std::size_t i = 1; i < runs.size(); ++i) {
        const auto refuse = [&](const std::string& what) {
            throw InputError(
                fmt::format("'{}' and '{}' are not of one series (they differ in {}); a series differs in ranks only",
                            runs[0].run, runs[i].run, what));
        };
        if (ids[i] != ids[0]) refuse(fmt::format("{}", fmt::join(differing_keys(ids[0], ids[i]), ", ")));
        if (runs[i].origin != runs[0].origin)
            refuse(fmt::format("origin: one is {}, the other {}", record::to_string(runs[i].origin),
                               record::to_string(runs[0].origin)));
        if (runs[i].machine != runs[0].machine)
            refuse(fmt::format("machine: {}, {}", runs[0].machine, runs[i].machine));
    }
}

/// Repeats of one rank count become the one whose median step time is the middle.
std::vector<RunFindings> pool_repeats(std::vector<RunFindings> runs, std::vector<std::string>& warnings) {
    std::map<int, std::vector<RunFindings>> by_ranks;
    for (auto& run : runs) by_ranks[run.ranks].push_back(std::move(run));
    std::vector<RunFindings> pooled;
    for (auto& [ranks, repeats] : by_ranks) {
        std::sort(repeats.begin(), repeats.end(),
                  [](const RunFindings& a, const RunFindings& b) { return a.step_time.median < b.step_time.median; });
        if (repeats.size() > 1)
            warnings.push_back(fmt::format("{} runs on {} ranks: their median is shown ({})", repeats.size(), ranks,
                                           repeats[(repeats.size() - 1) / 2].run));
        pooled.push_back(std::move(repeats[(repeats.size() - 1) / 2]));
    }
    return pooled;
}

Scaling scaling_of(const std::vector<RunFindings>& points) {
    if (points.size() < 2) return Scaling::single;
    const bool is_strong = std::all_of(points.begin(), points.end(),
                                       [&](const RunFindings& p) { return p.global_batch == points[0].global_batch; });
    return is_strong ? Scaling::strong : Scaling::weak;
}

void add_efficiency(SeriesFindings& series) {
    const auto base = std::find_if(series.points.begin(), series.points.end(),
                                   [&](const RunFindings& p) { return p.ranks == series.baseline_ranks; });
    if (base == series.points.end())
        throw InputError(fmt::format("the baseline of {} ranks is not among the runs", series.baseline_ranks));
    const double reference = base->throughput / base->ranks;
    for (auto& point : series.points) {
        point.speedup = point.throughput / reference / base->ranks;
        point.efficiency = point.throughput / reference / point.ranks;
        if (*point.efficiency > 1.02 && point.ranks > base->ranks)
            series.warnings.push_back(
                fmt::format("efficiency {:.2f} on {} ranks is above 1: the run on {} ranks may be a slow baseline "
                            "(measure it again)",
                            *point.efficiency, point.ranks, base->ranks));
    }
}

}  // namespace

SeriesFindings make_series(std::vector<RunFindings> runs, const std::vector<std::string>& series_ids,
                           std::optional<int> baseline_ranks) {
    if (runs.empty() || runs.size() != series_ids.size()) throw LogicError("a series needs runs and an id for each");
    require_one_series(runs, series_ids);
    SeriesFindings series;
    series.points = pool_repeats(std::move(runs), series.warnings);
    series.baseline_ranks = baseline_ranks.value_or(series.points.front().ranks);
    // A bus bandwidth is a rank's already: it neither speeds up nor scales.
    if (series.points.front().collective) return series;
    series.scaling = scaling_of(series.points);
    add_efficiency(series);
    return series;
}

SeriesFindings analyze_series(const std::vector<std::filesystem::path>& paths,
                              const std::optional<std::filesystem::path>& baseline) {
    std::vector<RunFindings> runs;
    std::vector<std::string> ids;
    std::vector<int> threads;
    std::optional<int> baseline_ranks;
    const auto add = [&](const std::filesystem::path& path) {
        const record::RunReader reader(path);
        runs.push_back(analyze_run(reader));
        ids.push_back(reader.run().series_text);
        threads.push_back(reader.ranks().empty() ? 0 : reader.ranks().front().threads);
        if (threads.back() != threads.front())
            throw InputError(
                fmt::format("'{}' ran with {} threads a rank and '{}' with {}; ranks of one series have equal shares "
                            "of the host (set "
                            "threads_per_rank in the experiment)",
                            runs.front().run, threads.front(), runs.back().run, threads.back()));
        return runs.back().ranks;
    };
    for (const auto& path : paths) add(path);
    if (baseline) {
        const bool is_given = std::any_of(
            paths.begin(), paths.end(), [&](const auto& path) { return std::filesystem::equivalent(path, *baseline); });
        baseline_ranks = is_given ? record::RunReader(*baseline).run().ranks : add(*baseline);
    }
    return make_series(std::move(runs), ids, baseline_ranks);
}

}  // namespace lockstep::analysis
