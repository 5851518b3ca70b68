#include "drive/describe.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "machine/cluster_form.hpp"

namespace lockstep::drive {

namespace {

std::string text_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void add_text(record::RunDescription& run, const std::string& name, const std::filesystem::path& file) {
    if (!file.empty() && std::filesystem::exists(file)) run.texts[name] = text_of(file);
}

void describe_collective(record::RunDescription& run, const experiment::CollectiveRequest& collective) {
    run.model = collective.title();
    run.precision = to_string(collective.dtype);
    run.throughput_unit = "GB/s busbw";
}

void describe_training(record::RunDescription& run, const experiment::Experiment& experiment,
                       const step::StepGraph& graph, const machine::Device& device) {
    run.model = experiment.model.name;
    run.precision = to_string(experiment.precision);
    run.framework = experiment.framework.name;
    run.is_strong_scaling = experiment.is_strong_scaling();
    run.throughput_unit = experiment.model.sample_unit + "/s";
    run.tokens_per_sample = experiment.model.tokens_per_sample();
    run.model_flops = graph.model_flops;
    if (const auto peak = peak_for(device, experiment.precision)) {
        run.peak = peak->rate;
        run.peak_source = peak->source;
    }
    add_text(run, "model.yaml", experiment.model.file);
    add_text(run, "framework.yaml", experiment.framework.file);
}

}  // namespace

std::string machine_title(const config::Node& machine) {
    if (!machine.is_mapping()) return machine.text();
    config::Diagnostics ignored;  // the experiment's reader has reported them
    const machine::ClusterForm form = machine::read_cluster_form(machine, ignored);
    std::string title;
    for (const auto& some : form.nodes)
        title += fmt::format("{}{}x {}", title.empty() ? "" : " + ", some.count, some.node);
    return fmt::format("{} ({})", title,
                       !form.network               ? "no network"
                       : form.network->is_scalar() ? form.network->text()
                                                   : "network in place");
}

std::optional<PeakUsed> peak_for(const machine::Device& device, Precision precision) {
    const MathType type = math_type(precision);
    const auto rate = device.peak(type);
    if (!rate) return std::nullopt;
    std::string source = device.sources.empty() ? device.name : device.sources.front();
    return PeakUsed{*rate,
                    fmt::format("{} dense {} of {}: {}", config::format(*rate), to_string(type), device.name, source)};
}

record::RunDescription describe_run(const experiment::Experiment& experiment, const step::StepGraph& graph,
                                    const machine::Machine& machine, record::Origin origin,
                                    const step::Executor& executor) {
    record::RunDescription run;
    run.origin = origin;
    run.experiment = experiment.name;
    run.label = experiment.label;
    run.machine = machine.name;
    run.intended_machine = machine_title(experiment.machine);
    const step::ExecutorInfo info = executor.info();
    run.backend = info.backend;
    run.span_cost = info.span_cost;
    run.ranks = graph.mesh.ranks();
    run.global_batch = graph.global_batch;
    run.seed = experiment.seed;
    if (experiment.collective)
        describe_collective(run, *experiment.collective);
    else
        describe_training(run, experiment, graph, machine.device);
    run.memory = executor.memory();
    run.memory_capacity = machine.device.memory;
    run.series_text = experiment.series_text();
    run.texts["experiment.json"] = experiment.merged.canonical();
    add_text(run, "machine.yaml", machine.file);
    add_text(run, "device.yaml", machine.device.file);
    return run;
}

}  // namespace lockstep::drive
