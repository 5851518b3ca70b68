// lockstep check: reads an experiment and everything it names, builds each of its graphs, and says what is wrong.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"

namespace lockstep::cli {

namespace {

machine::DeviceKind kind_of_machine(const LoadedInput& input, const experiment::Experiment& experiment) {
    if (experiment.machine.is_scalar() && experiment.machine.text() == "host") return machine::DeviceKind::cpu;
    const auto machine = load_turned(input.data, experiment.machine, experiment.knobs);
    for (const int ranks : experiment.ranks) machine.place(ranks);
    return machine.device.kind;
}

ExitCode check(const Parsed& parsed) {
    const LoadedInput input = load_input(parsed.words[0], parsed.globals);
    if (parsed.globals.print_config) {
        print_config(input);
        return ExitCode::ok;
    }
    std::size_t graphs = 0;
    for (const auto& point : input.experiments.points) {
        const auto experiment = for_device(point, kind_of_machine(input, point));
        for (const int ranks : experiment.ranks) {
            build_graph(experiment, experiment.plan_for({ranks, ranks}), {ranks, ranks});
            ++graphs;
        }
    }
    fmt::print("{}: {} point{}, {} step graph{}: no errors\n", input.experiments.file.string(),
               input.experiments.points.size(), input.experiments.points.size() == 1 ? "" : "s", graphs,
               graphs == 1 ? "" : "s");
    return ExitCode::ok;
}

}  // namespace

Command check_command() {
    return {"check",
            {.usage = "check EXPERIMENT",
             .about = "read an experiment and build its graphs, no more",
             .options = {},
             .least_words = 1,
             .most_words = 1},
            check};
}

}  // namespace lockstep::cli
