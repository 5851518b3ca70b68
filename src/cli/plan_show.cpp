// lockstep plan show: prints the step graph of an experiment.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"
#include "drive/shortened_memory.hpp"
#include "machine/catalog.hpp"
#include "machine/host_probe.hpp"
#include "report/plan_tables.hpp"
#include "step/check.hpp"
#include "step/liveness.hpp"

namespace lockstep::cli {

namespace {

/// The machine a plan is for; the host is looked at, not measured.
struct Target {
    std::optional<machine::Machine> machine;  ///< none: the host
    machine::HostStructure host;

    bool is_host() const { return !machine; }
    machine::Placement place(int ranks) const {
        return machine ? machine->place(ranks) : machine::Placement{ranks, ranks};
    }
    std::string device_name() const { return machine ? machine->device.name : host.cpu_model + " (all ranks)"; }
    Bytes capacity() const { return machine ? machine->device.memory : Bytes{}; }
    int nics_per_node() const {
        if (!machine || !machine->network) return 0;
        return machine->network->nics_per_node > 0 ? machine->network->nics_per_node : machine->node.nics();
    }
};

Target target_of(const config::DataPath& data, const experiment::Experiment& experiment) {
    if (experiment.machine.is_scalar() && experiment.machine.text() == "host")
        return {std::nullopt, machine::read_host_structure()};
    config::Diagnostics diagnostics;
    machine::Machine machine = machine::load_machine(data, experiment.machine, diagnostics);
    diagnostics.throw_if_any();
    return {std::move(machine), {}};
}

/// A step of many passes with what is the same in shorter ones: they are checked, and measured, in its place.
report::PlanView view_of(const step::StepGraph& graph, const std::optional<drive::ShortenedGraphs>& shortened) {
    if (!shortened) {
        step::check(graph);
        return {graph, step::measure_memory(graph), "", {}};
    }
    report::PlanView view{graph, drive::shortened_memory(shortened->more, shortened->passes), "", {}};
    view.memory_passes = shortened->passes;
    return view;
}

ExitCode show_plan(const Parsed& parsed) {
    const LoadedInput input = load_input(parsed.words[0], parsed.globals);
    if (parsed.globals.print_config) {
        print_config(input);
        return ExitCode::ok;
    }
    config::Json all = config::Json::array();
    for (const auto& point : input.experiments.points) {
        const Target target = target_of(input.data, point);
        const auto experiment =
            for_device(point, target.is_host() ? machine::DeviceKind::cpu : machine::DeviceKind::gpu);
        for (const int ranks : parsed.integers("ranks").value_or(std::vector{experiment.ranks.back()})) {
            const machine::Placement placement = target.place(ranks);
            const plan::Plan plan = experiment.plan_for(placement);
            const auto shortened = drive::shorten(experiment, plan, placement);
            const step::StepGraph graph = drive::build_unchecked(experiment, plan, placement);
            report::PlanView view = view_of(graph, shortened);
            view.device = target.device_name();
            view.capacity = target.capacity();
            view.nics_per_node = target.nics_per_node();
            if (view.capacity.value > 0 && !experiment.collective)
                view.largest_micro_batch =
                    drive::largest_micro_batch(memory_of(experiment, plan, placement), view.capacity);
            if (parsed.globals.json)
                all.push(report::plan_json(view));
            else
                fmt::print("{}\n", report::format_plan(view));
        }
    }
    if (parsed.globals.json) fmt::print("{}\n", all.dump());
    return ExitCode::ok;
}

}  // namespace

Command plan_show_command() {
    return {"plan show",
            {.usage = "plan show EXPERIMENT",
             .about = "print what a step consists of, and its memory",
             .options = {{"ranks", "N,...", "world sizes (the experiment's largest)"}},
             .least_words = 1,
             .most_words = 1},
            show_plan};
}

}  // namespace lockstep::cli
