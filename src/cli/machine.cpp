// lockstep machine list, show and detect.
#include <fmt/format.h>

#include "cli/backends.hpp"
#include "cli/command.hpp"
#include "cli/gpu_host.hpp"
#include "cli/host.hpp"
#include "cli/inputs.hpp"
#include "cli/run_setup.hpp"
#include "machine/catalog.hpp"
#include "report/machine_tables.hpp"

namespace lockstep::cli {

namespace {

void show_one(const machine::Machine& machine, const Globals& globals) {
    if (globals.json)
        fmt::print("{}\n", report::machine_json(machine).dump());
    else
        fmt::print("{}", report::format_machine(machine));
}

ExitCode list_machines(const Parsed& parsed) {
    const config::DataPath data;
    std::vector<machine::Machine> machines;
    for (const auto& name : machine::machine_names(data)) machines.push_back(machine::load_machine(data, name));
    if (parsed.globals.json)
        fmt::print("{}\n", report::machine_list_json(machines).dump());
    else
        fmt::print("{}", report::format_machine_list(machines));
    return ExitCode::ok;
}

ExitCode show_machine(const Parsed& parsed) {
    if (parsed.words[0] == "host") {
        const auto structure = machine::read_host_structure();
        const int threads = threads_per_rank(structure, 0, {structure.cores});
        show_one(machine::make_host_machine(structure, rates_for_prediction(structure, threads, structure.cores),
                                            structure.cores),
                 parsed.globals);
    } else {
        show_one(machine::load_machine(config::DataPath{}, parsed.words[0]), parsed.globals);
    }
    return ExitCode::ok;
}

/// The GPUs of this host as a machine; none, with a line on stderr that says why, where there are none.
std::optional<machine::Machine> machine_of_gpus(const Globals& globals) {
    const LoadedGpu loaded = load_gpu();
    const VisibleGpus visible = visible_gpus(loaded);
    if (visible.why_not.empty()) return detected_machine(detect_gpus(*loaded.backend));
    if (!globals.quiet) fmt::print(stderr, "lockstep: the CPU host alone: {}\n", visible.why_not);
    return std::nullopt;
}

ExitCode detect_machine(const Parsed& parsed) {
    LaunchedWorld launched;
    const auto structure = machine::read_host_structure();
    const int threads = static_cast<int>(
        parsed.integer("threads", 1).value_or(std::max(1, structure.cores / launched.world().local_size())));
    const auto rates = measure_host(launched.world(), structure, threads);
    if (launched.world().rank() != 0) return ExitCode::ok;
    const auto host = machine::make_host_machine(structure, rates, launched.world().local_size());
    const auto gpus = machine_of_gpus(parsed.globals);
    if (parsed.globals.json) {
        config::Json json = report::machine_json(host);
        json.set("gpus", gpus ? report::machine_json(*gpus) : config::Json());
        fmt::print("{}\n", json.dump());
        return ExitCode::ok;
    }
    show_one(host, parsed.globals);
    if (!parsed.globals.quiet) fmt::print("kept in {}\n", machine::host_rates_file(structure).string());
    if (gpus) fmt::print("\n{}", report::format_machine(*gpus));
    return ExitCode::ok;
}

}  // namespace

Command machine_list_command() {
    return {"machine list",
            {.usage = "machine list", .about = "the machines that are described", .options = {}},
            list_machines};
}

Command machine_show_command() {
    return {"machine show",
            {.usage = "machine show NAME",
             .about = "matrix, links and ring channels of a machine",
             .options = {},
             .least_words = 1,
             .most_words = 1},
            show_machine};
}

Command machine_detect_command() {
    return {"machine detect",
            {.usage = "machine detect",
             .about = "measure this host and keep its rates; its GPUs and their links",
             .options = {{"threads", "N", "cores of one rank (cores / ranks)"}}},
            detect_machine};
}

}  // namespace lockstep::cli
