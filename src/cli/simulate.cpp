// lockstep simulate: predicts an experiment on described machines.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/analyze.hpp"
#include "analysis/extrapolate.hpp"
#include "analysis/pool_seeds.hpp"
#include "cli/command.hpp"
#include "cli/host.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"
#include "cli/results.hpp"
#include "cli/version.hpp"
#include "cost/cost_model.hpp"
#include "drive/describe.hpp"
#include "drive/predict.hpp"
#include "drive/shortened_memory.hpp"
#include "machine/catalog.hpp"
#include "record/live_writer.hpp"
#include "sim/sim_executor.hpp"

namespace lockstep::cli {

namespace {

/// Steps of a prediction that is not recorded: enough for a steady state, which repeats.
constexpr int steady_steps = 3;
constexpr int steady_warmup = 1;

struct Request {
    std::vector<config::Node> machines;  ///< empty: the experiment's own
    std::vector<int> ranks;              ///< empty: the experiment's own
    std::optional<std::filesystem::path> out;
    std::optional<long> steps;
    int seeds = 1;
    sim::Fold fold = sim::Fold::alike;
};

Request read_request(const Parsed& parsed) {
    Request request;
    for (const auto& name : parsed.list("machine").value_or(std::vector<std::string>{}))
        request.machines.push_back(config::Node::make_scalar(name, {"--machine", 0, 0}));
    request.ranks = parsed.integers("ranks").value_or(std::vector<int>{});
    if (const auto out = parsed.value("out")) request.out = *out;
    request.steps = parsed.integer("steps", 1);
    if (parsed.has("every-rank")) request.fold = sim::Fold::none;
    request.seeds = static_cast<int>(parsed.integer("seeds", 1).value_or(1));
    if (request.out && request.seeds > 1)
        throw UsageError("--seeds makes several predictions of a point, and --out records one; leave one of them out");
    return request;
}

machine::Machine machine_for(const config::DataPath& data, const config::Node& node,
                             const experiment::Experiment& experiment, const std::vector<int>& ranks) {
    if (node.is_scalar() && node.text() == "host") {
        const auto structure = machine::read_host_structure();
        const int threads = threads_per_rank(structure, experiment.threads_per_rank, experiment.ranks);
        const int most = *std::max_element(ranks.begin(), ranks.end());
        return machine::make_host_machine(structure, rates_for_prediction(structure, threads, most),
                                          std::max(most, structure.cores / threads));
    }
    config::Diagnostics diagnostics;
    auto machine = machine::load_machine(data, node, diagnostics);
    diagnostics.throw_if_any();
    return machine;
}

/// A point of the experiment on a machine.
struct Point {
    const experiment::Experiment& experiment;
    const machine::Machine& machine;
    machine::Placement placement;
    plan::Plan plan;
};

void warn_if_too_large(const Point& at, const step::MemoryUse& memory, std::vector<std::string>& warnings) {
    const std::string excess = drive::why_too_large(memory, at.machine.device.memory, at.machine.device.name,
                                                    memory_of(at.experiment, at.plan, at.placement));
    if (!excess.empty()) warnings.push_back(excess);
}

analysis::RunFindings predict(const Point& at, const step::StepGraph& graph, const Request& request) {
    const experiment::Experiment& experiment = at.experiment;
    const machine::Machine& machine = at.machine;
    const cost::CostModel durations(machine, graph.placement);
    sim::SimExecutor executor(durations,
                              {.device = machine.device.name,
                               .host_per_op = durations.host_per_op(),
                               .seed = experiment.seed,
                               .variation = experiment.variation.within(at.placement.ranks, at.placement.nodes()),
                               .fold = request.fold});
    executor.prepare(graph);

    record::RunDescription run = drive::describe_run(experiment, graph, machine, record::Origin::predicted, executor);
    const long counted =
        request.steps.value_or(request.out ? experiment.steps : std::min(experiment.steps, steady_steps));
    run.warmup_steps = request.out ? experiment.warmup : std::min(experiment.warmup, steady_warmup);
    run.planned_steps = static_cast<int>(run.warmup_steps + counted);
    run.provenance = versions();
    if (request.out) warn_if_too_large(at, run.memory, run.warnings);
    const auto records = drive::collect_steps(executor, run.planned_steps);
    auto findings = analysis::analyze_records(run, graph, records);
    if (request.out) {
        const std::string name = fmt::format("{}{}{}-{}-{}r", experiment.name, experiment.label.empty() ? "" : "-",
                                             experiment.label, machine.name, at.placement.ranks);
        std::string folder;
        for (const char c : name) folder += c == ' ' || c == '/' ? '_' : c;
        drive::write_prediction(*request.out / folder, run, graph, records);
        findings.run = (*request.out / folder).string();
    }
    return findings;
}

/// What is recorded is simulated pass by pass; else a step of many passes is told by shorter ones, where its passes are
/// alike.
analysis::RunFindings predict_seed(const Point& at, const Request& request) {
    const bool is_told_whole = request.out || at.experiment.variation.is_changing();
    const auto shortened = is_told_whole ? std::nullopt : drive::shorten(at.experiment, at.plan, at.placement);
    if (!shortened) return predict(at, build_graph(at.experiment, at.plan, at.placement), request);
    auto findings = analysis::extrapolate_passes(predict(at, shortened->fewer, request),
                                                 predict(at, shortened->more, request), shortened->passes);
    findings.memory = drive::most_of(drive::shortened_memory(shortened->more, shortened->passes));
    return findings;
}

analysis::RunFindings predict_point(const experiment::Experiment& written, const machine::Machine& machine, int ranks,
                                    const Request& request) {
    auto experiment = for_device(written, machine.device.kind);
    const machine::Placement placement = machine.place(ranks);
    std::vector<analysis::RunFindings> seeds;
    for (int i = 0; i < request.seeds; ++i, ++experiment.seed)
        seeds.push_back(predict_seed({experiment, machine, placement, experiment.plan_for(placement)}, request));
    analysis::RunFindings findings = analysis::pool_seeds(seeds);
    const Point at{experiment, machine, placement, experiment.plan_for(placement)};
    if (written.failures)
        findings.goodput =
            analysis::find_goodput(*written.failures, ranks, findings.step_time.median, findings.memory, written.seed);
    if (!request.out) warn_if_too_large(at, findings.memory, findings.warnings);
    return findings;
}

ExitCode simulate(const Parsed& parsed) {
    const Request request = read_request(parsed);
    const LoadedInput input = load_input(parsed.words[0], parsed.globals);
    if (parsed.globals.print_config) {
        print_config(input);
        return ExitCode::ok;
    }
    std::vector<analysis::SeriesFindings> all;
    for (const auto& experiment : input.experiments.points) {
        const auto machines = request.machines.empty() ? std::vector{experiment.machine} : request.machines;
        const auto ranks = request.ranks.empty() ? experiment.ranks : request.ranks;
        for (const auto& node : machines) {
            const machine::Machine machine = machine_for(input.data, node, experiment, ranks);
            sim::speed_profiles(experiment.variation, machine.place(*std::ranges::max_element(ranks)));  // or throws
            std::vector<analysis::RunFindings> points;
            for (const int n : ranks) points.push_back(predict_point(experiment, machine, n, request));
            const std::vector<std::string> ids(points.size(), experiment.series_text());
            all.push_back(analysis::make_series(std::move(points), ids, std::nullopt));
        }
    }
    print_results(all, {}, parsed.globals);
    return ExitCode::ok;
}

}  // namespace

Command simulate_command() {
    return {"simulate",
            {.usage = "simulate EXPERIMENT",
             .about = "predict an experiment on a described machine",
             .options = {{"machine", "NAME,...", "machines instead of the experiment's own"},
                         {"ranks", "N,...", "rank counts instead of the experiment's own"},
                         {"steps", "N", "counted steps"},
                         {"every-rank", "", "simulate each rank, not one of each kind (the same times, slower)"},
                         {"seeds", "N", "predictions with seeds from the experiment's on (variation.jitter)"},
                         {"out", "DIR", "record each prediction in a folder below DIR"}},
             .least_words = 1,
             .most_words = 1},
            simulate};
}

}  // namespace lockstep::cli
