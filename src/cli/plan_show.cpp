// lockstep plan show: prints the step graph of an experiment.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"
#include "report/plan_tables.hpp"
#include "step/liveness.hpp"

namespace lockstep::cli {

namespace {

ExitCode show_plan(const Parsed& parsed) {
    const LoadedInput input = load_input(parsed.words[0], parsed.globals);
    if (parsed.globals.print_config) {
        print_config(input);
        return ExitCode::ok;
    }
    config::Json all = config::Json::array();
    for (const auto& point : input.experiments.points) {
        const bool is_host = point.machine.is_scalar() && point.machine.text() == "host";
        const auto experiment = for_device(point, is_host ? machine::DeviceKind::cpu : machine::DeviceKind::gpu);
        for (const int ranks : parsed.integers("ranks").value_or(std::vector{experiment.ranks.back()})) {
            const step::StepGraph graph = build_graph(experiment, experiment.plan_for({ranks, ranks}), {ranks, ranks});
            const step::MemoryPlan memory = step::plan_memory(graph, graph.classes.front());
            if (parsed.globals.json)
                all.push(report::plan_json(graph, memory));
            else
                fmt::print("{}\n", report::format_plan(graph, memory));
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
