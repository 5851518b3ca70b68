#include "analysis/analyze.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/breakdown.hpp"
#include "analysis/device_states.hpp"
#include "analysis/span_coverage.hpp"
#include "base/error.hpp"
#include "fit/bootstrap.hpp"
#include "fit/quantiles.hpp"
#include "record/run_reader.hpp"

namespace lockstep::analysis {

namespace {

/// One counted step as the critical rank saw it.
struct CountedStep {
    Seconds time;
    StepBreakdown breakdown;
    bool has_spans = false;
};

/// What is kept of all steps.
struct Collected {
    std::vector<CountedStep> steps;
    SpanCoverage spans;
    DeviceStates devices;
};

/// Takes records ordered by (step, rank) and keeps one step: the record of the rank that finished it last, and when the
/// last rank arrived at each collective.
class StepCollector {
public:
    StepCollector(const record::RunDescription& run, const step::StepGraph& graph) : run_(run), graph_(graph) {}

    void add(const step::StepRecord& record) {
        if (is_open_ && record.step != critical_.step) close_step();
        for (const step::Span& span : record.spans) {
            if (!step::is_communication(graph_.op(span.op))) continue;
            auto [arrival, is_new] = arrivals_.try_emplace({span.op, span.micro_batch}, span.ready);
            if (!is_new) arrival->second = std::max(arrival->second, span.ready);
        }
        if (!is_open_ || critical_.end < record.end) critical_ = record;
        first_begin_ = is_open_ ? std::min(first_begin_, record.begin) : record.begin;
        is_open_ = true;
        if (record.step >= run_.warmup_steps) all_.devices.add(record);
    }

    Collected finish() {
        if (is_open_) close_step();
        return std::move(all_);
    }

private:
    void close_step() {
        // A step's time is the difference of successive completions; the first one has nothing before it but its own
        // begin.
        const Interval window{has_previous_ ? previous_end_ : first_begin_, critical_.end};
        if (critical_.step >= run_.warmup_steps) {
            CountedStep counted{(window.end - window.begin).seconds(), {}, !critical_.spans.empty()};
            if (counted.has_spans) counted.breakdown = break_down(graph_, critical_, window, arrivals_);
            all_.steps.push_back(counted);
        }
        all_.spans.add(critical_.step, !critical_.spans.empty());
        previous_end_ = critical_.end;
        has_previous_ = true;
        is_open_ = false;
        arrivals_.clear();
    }

    const record::RunDescription& run_;
    const step::StepGraph& graph_;
    step::StepRecord critical_;
    LastArrivals arrivals_;
    Nanoseconds first_begin_, previous_end_;
    bool is_open_ = false, has_previous_ = false;
    Collected all_;
};

StepTime step_time(const std::vector<CountedStep>& steps, const record::RunDescription& run) {
    std::vector<double> times;
    for (const auto& step : steps) times.push_back(step.time.value);
    StepTime result;
    result.median = Seconds{fit::median(times)};
    result.p95 = Seconds{fit::quantile(times, 0.95)};
    result.p99 = Seconds{fit::quantile(times, 0.99)};
    if (run.interval80_low && run.interval80_high) {
        result.interval80_low = *run.interval80_low;
        result.interval80_high = *run.interval80_high;
    } else if (times.size() < 2) {
        result.interval80_low = result.interval80_high = result.median;
    } else {
        const auto interval =
            fit::bootstrap_interval(times, [](std::span<const double> sample) { return fit::median(sample); },
                                    {.coverage = 0.8, .seed = run.seed});
        result.interval80_low = Seconds{interval.low};
        result.interval80_high = Seconds{interval.high};
    }
    return result;
}

/// The breakdown of the median step (of the two middle ones of an even number), so that the parts sum to the median
/// step time.
Breakdown median_breakdown(std::vector<CountedStep> steps) {
    std::sort(steps.begin(), steps.end(), [](const CountedStep& a, const CountedStep& b) { return a.time < b.time; });
    const CountedStep& low = steps[(steps.size() - 1) / 2];
    const CountedStep& high = steps[steps.size() / 2];
    Breakdown result;
    for (const auto part : breakdown_parts)
        result.*part = 0.5 * (low.breakdown.parts.*part + high.breakdown.parts.*part);
    return result;
}

void add_breakdown(RunFindings& findings, const std::vector<CountedStep>& all) {
    std::vector<CountedStep> steps;
    std::copy_if(all.begin(), all.end(), std::back_inserter(steps),
                 [](const CountedStep& step) { return step.has_spans; });
    if (steps.empty()) {
        findings.warnings.push_back("no spans were recorded: the step times are known, where they went is not");
        return;
    }
    if (steps.size() < all.size())
        findings.spans += fmt::format("; the breakdown is of {} of {} counted steps", steps.size(), all.size());
    findings.breakdown = median_breakdown(steps);
    for (const auto part : breakdown_parts) {
        std::vector<double> values;
        for (const auto& step : steps) values.push_back((step.breakdown.parts.*part).value);
        findings.breakdown_p95.*part = Seconds{fit::quantile(values, 0.95)};
    }
    Seconds communication, hidden;
    for (const auto& step : steps) {
        communication += step.breakdown.communication;
        hidden += step.breakdown.hidden_communication;
    }
    findings.overlapped_share = communication.value > 0 ? hidden / communication : 0;
}

/// Flops of the matrix units of one rank in one step, recomputation included.
Flops executed_flops(const step::StepGraph& graph) {
    Flops total;
    for (const step::RankClass& rank_class : graph.classes)
        step::for_each_op(graph, rank_class.program, [&](const step::OpInstance& instance) {
            const auto* compute = std::get_if<step::Compute>(&instance.op->kind);
            if (compute == nullptr) return;
            if (std::holds_alternative<step::Gemm>(*compute) || std::holds_alternative<step::Convolution>(*compute) ||
                std::holds_alternative<step::Attention>(*compute))
                total += static_cast<double>(rank_class.multiplicity) * instance.op->flops;
        });
    return total / graph.mesh.ranks();
}

void add_utilisation(RunFindings& findings, const record::RunDescription& run, const step::StepGraph& graph) {
    if (!run.peak || run.peak->value <= 0) return;
    findings.peak = run.peak;
    findings.peak_source = run.peak_source;
    const auto share = [&](Flops flops) { return flops / findings.step_time.median / *run.peak; };
    const double mfu = share(run.model_flops);
    if (mfu > 1) {
        findings.warnings.push_back(
            fmt::format("MFU would be {:.2f}, above 1, and is not reported: the peak used ({}) is not this device's",
                        mfu, run.peak_source));
        return;
    }
    findings.mfu = mfu;
    findings.hfu = std::min(1.0, share(executed_flops(graph)));
}

RunFindings describe(const record::RunDescription& run) {
    RunFindings findings;
    findings.experiment = run.experiment;
    findings.label = run.label;
    findings.model = run.model;
    findings.machine = run.machine;
    findings.precision = run.precision;
    findings.framework = run.framework;
    findings.backend = run.backend;
    findings.ranks = run.ranks;
    findings.origin = run.origin;
    findings.global_batch = run.global_batch;
    findings.throughput_unit = run.throughput_unit;
    findings.memory = run.memory;
    findings.memory_capacity = run.memory_capacity;
    findings.warnings = run.warnings;
    return findings;
}

RunFindings conclude(const record::RunDescription& run, const step::StepGraph& graph, const Collected& all) {
    const std::vector<CountedStep>& steps = all.steps;
    if (steps.empty())
        throw IncompleteError(
            fmt::format("{} on {} ranks finished no step after its {} warm-up steps; there is nothing to analyse",
                        run.experiment, run.ranks, run.warmup_steps));
    RunFindings findings = describe(run);
    findings.counted_steps = static_cast<std::int64_t>(steps.size());
    findings.step_time = step_time(steps, run);
    for (const CountedStep& step : steps) findings.step_times.push_back(step.time);
    if (findings.step_time.median.value <= 0)
        throw InputError(
            fmt::format("{}: the clock of the run does not advance; the record is not usable", run.experiment));
    findings.throughput = static_cast<double>(run.global_batch) / findings.step_time.median.value;
    findings.collective = find_collective(graph, findings.step_time.median);
    if (findings.collective) findings.throughput = findings.collective->bus / 1_GBps;
    findings.spans = all.spans.text(run.span_cost, findings.step_time.median);
    add_breakdown(findings, steps);
    for (auto& warning : all.devices.warnings()) findings.warnings.push_back(std::move(warning));
    add_utilisation(findings, run, graph);
    return findings;
}

}  // namespace

RunFindings analyze_records(const record::RunDescription& run, const step::StepGraph& graph,
                            const std::vector<step::StepRecord>& records) {
    StepCollector collector(run, graph);
    for (const auto& record : records) collector.add(record);
    return conclude(run, graph, collector.finish());
}

RunFindings analyze_run(const record::RunReader& run) {
    StepCollector collector(run.run(), run.graph());
    run.for_each(0, run.steps(), [&](const step::StepRecord& record) { collector.add(record); });
    RunFindings findings = conclude(run.run(), run.graph(), collector.finish());
    findings.status = run.status();
    findings.run = run.path().string();
    for (const auto& remark : run.remarks()) findings.warnings.push_back(remark);
    return findings;
}

}  // namespace lockstep::analysis
