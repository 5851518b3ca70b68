// lockstep simulate: predicts an experiment on described machines.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/analyze.hpp"
#include "cli/command.hpp"
#include "cli/host.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"
#include "cli/results.hpp"
#include "cli/version.hpp"
#include "cost/cost_model.hpp"
#include "drive/describe.hpp"
#include "drive/predict.hpp"
#include "machine/host_probe.hpp"
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
};

Request read_request(const Parsed& parsed) {
    Request request;
    for (const auto& name : parsed.list("machine").value_or(std::vector<std::string>{}))
        request.machines.push_back(config::Node::make_scalar(name, {"--machine", 0, 0}));
    request.ranks = parsed.integers("ranks").value_or(std::vector<int>{});
    if (const auto out = parsed.value("out")) request.out = *out;
    request.steps = parsed.integer("steps", 1);
    return request;
}

machine::Machine machine_for(const config::DataPath& data, const config::Node& node,
                             const experiment::Experiment& experiment, const std::vector<int>& ranks) {
    if (node.is_scalar() && node.text() == "host") {
        const auto structure = machine::read_host_structure();
        const int threads = threads_per_rank(structure, experiment.threads_per_rank, experiment.ranks);
        const int most = *std::max_element(ranks.begin(), ranks.end());
        return machine::apply_knobs(
            machine::make_host_machine(structure, rates_for_prediction(structure, threads, most),
                                       std::max(most, structure.cores / threads)),
            experiment.knobs);
    }
    return load_turned(data, node, experiment.knobs);
}

analysis::RunFindings predict_point(const experiment::Experiment& written, const machine::Machine& machine, int ranks,
                                    const Request& request) {
    const auto experiment = for_device(written, machine.device.kind);
    const machine::Placement placement = machine.place(ranks);
    const plan::Plan plan = experiment.plan_for(placement);
    const step::StepGraph graph = build_graph(experiment, plan, placement);
    const cost::CostModel durations(machine, graph.placement);
    sim::SimExecutor executor(
        durations, {.device = machine.device.name, .host_per_op = durations.host_per_op(), .seed = experiment.seed});
    executor.prepare(graph);

    record::RunDescription run = drive::describe_run(experiment, graph, machine, record::Origin::predicted, executor);
    const long counted =
        request.steps.value_or(request.out ? experiment.steps : std::min(experiment.steps, steady_steps));
    run.warmup_steps = request.out ? experiment.warmup : std::min(experiment.warmup, steady_warmup);
    run.planned_steps = static_cast<int>(run.warmup_steps + counted);
    run.provenance = versions();
    const std::string excess =
        drive::why_too_large(run.memory, run.memory_capacity, machine.smallest_device(placement).name,
                             memory_of(experiment, plan, placement));
    if (!excess.empty()) run.warnings.push_back(excess);
    const auto records = drive::collect_steps(executor, run.planned_steps);
    auto findings = analysis::analyze_records(run, graph, records);
    if (request.out) {
        const std::string name = fmt::format("{}{}{}-{}-{}r", experiment.name, experiment.label.empty() ? "" : "-",
                                             experiment.label, machine.name, ranks);
        std::string folder;
        for (const char c : name) folder += c == ' ' || c == '/' ? '_' : c;
        drive::write_prediction(*request.out / folder, run, graph, records);
        findings.run = (*request.out / folder).string();
    }
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
                         {"out", "DIR", "record each prediction in a folder below DIR"}},
             .least_words = 1,
             .most_words = 1},
            simulate};
}

}  // namespace lockstep::cli
