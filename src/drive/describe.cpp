#include "drive/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
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
                       const step::StepGraph& graph, const machine::Machine& machine) {
    run.model = experiment.model.name;
    run.precision = to_string(experiment.precision);
    run.framework = experiment.framework.name;
    run.is_strong_scaling = experiment.is_strong_scaling();
    run.throughput_unit = experiment.model.sample_unit + "/s";
    run.tokens_per_sample = experiment.model.tokens_per_sample();
    run.model_flops = graph.model_flops;
    if (const auto peak = peak_for(machine, graph.placement, experiment.precision)) {
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

namespace {

struct RanksOfDevice {
    machine::Device device;
    int ranks = 0;
};

std::vector<RanksOfDevice> ranks_by_device(const machine::Machine& machine, const machine::Placement& placement) {
    std::vector<RanksOfDevice> result;
    for (int node = 0; node < placement.nodes(); ++node) {
        const machine::Device& device = machine.device_of(node);
        const int ranks = std::min(placement.ranks_per_node, placement.ranks - node * placement.ranks_per_node);
        const auto known =
            std::ranges::find_if(result, [&](const RanksOfDevice& r) { return r.device.name == device.name; });
        known == result.end() ? result.push_back({device, ranks}) : void(known->ranks += ranks);
    }
    return result;
}

}  // namespace

std::optional<PeakUsed> peak_for(const machine::Machine& machine, const machine::Placement& placement,
                                 Precision precision) {
    const MathType type = math_type(precision);
    const auto parts = ranks_by_device(machine, placement);
    FlopRate sum;
    std::string each;
    for (const RanksOfDevice& part : parts) {
        const auto rate = part.device.peak(type);
        if (!rate) return std::nullopt;
        sum += static_cast<double>(part.ranks) * *rate;
        each += fmt::format("{}{} of {} on {} ranks", each.empty() ? "" : ", ", config::format(*rate), part.device.name,
                            part.ranks);
    }
    const machine::Device& first = parts.front().device;
    const std::string source = first.sources.empty() ? first.name : first.sources.front();
    if (parts.size() == 1)
        return PeakUsed{*first.peak(type), fmt::format("{} dense {} of {}: {}", config::format(*first.peak(type)),
                                                       to_string(type), first.name, source)};
    const FlopRate mean = sum / static_cast<double>(placement.ranks);
    return PeakUsed{
        mean, fmt::format("{} dense {}, the mean of mixed devices ({})", config::format(mean), to_string(type), each)};
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
        describe_training(run, experiment, graph, machine);
    run.memory = executor.memory();
    run.memory_capacity = machine.smallest_device(graph.placement).memory;
    run.series_text = experiment.series_text();
    run.texts["experiment.json"] = experiment.merged.canonical();
    add_text(run, "machine.yaml", machine.file);
    add_text(run, "device.yaml", machine.device.file);
    return run;
}

}  // namespace lockstep::drive
