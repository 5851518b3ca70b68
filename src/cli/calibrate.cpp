// lockstep calibrate: measures what is here, fits the constants of the cost model, and writes them as a machine.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "calibrate/fit.hpp"
#include "calibrate/gpu_points.hpp"
#include "cli/command.hpp"
#include "cli/gpu_host.hpp"
#include "cli/host.hpp"
#include "cli/run_setup.hpp"
#include "machine/machine_writer.hpp"
#include "report/calibration_tables.hpp"
#include "report/machine_tables.hpp"
#include "world/agree.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct Request {
    std::optional<fs::path> out;
    BackendChoice backend = BackendChoice::automatic;
};

Request read_request(const Parsed& parsed) {
    if (!parsed.has("measure"))
        throw UsageError(
            "calibrate wants --measure, which measures the GPUs (or the CPUs) that are here; usage: lockstep calibrate "
            "--measure [--out FILE]");
    Request request;
    request.backend = parse_backend(parsed.value("backend").value_or("auto"));
    if (const auto out = parsed.value("out")) request.out = *out;
    if (request.out && fs::exists(*request.out) && !parsed.has("force"))
        throw UsageError(fmt::format("{} is there already; name another file, or add --force", request.out->string()));
    return request;
}

/// A machine as it was measured; on rank 0 alone.
struct Calibrated {
    machine::Machine machine;
    std::vector<calibrate::Comparison> comparisons;
};

std::string source_of(const gpu::GpuFacts& facts) {
    const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    return fmt::format("{} lockstep calibrate --measure, {}, {}",
                       facts.is_test_double ? "no measurement of a GPU:" : "measured by", facts.name, date);
}

/// Rank 0's GPU, and the wires between all ranks' GPUs. Collective.
Calibrated calibrate_gpus(world::World& world, const RunDevice& device) {
    if (world.local_size() != world.size())
        throw InputError(fmt::format("the {} ranks are on several hosts; start them on one, whose links are measured",
                                     world.size()));
    std::vector<report::Gpu> gpus;
    gpu::DeviceMeasurement measured;
    world::agree(world, [&] {
        if (world.rank() != 0) return;
        gpus = detect_gpus(*device.backend);
        if (static_cast<int>(gpus.size()) < world.size())
            throw RuntimeError(
                fmt::format("rank 0 sees {} of the {} GPUs and can't tell their links; let every rank see all of them "
                            "(CUDA_VISIBLE_DEVICES, srun --gpu-bind=none)",
                            gpus.size(), world.size()));
        measured = device.backend->measure(device.facts.ordinal);
    });
    const gpu::CollectiveMeasurement collectives = device.backend->measure_collectives(world, device.facts.ordinal);
    Calibrated result;
    world::agree(world, [&] {
        if (world.rank() != 0) return;
        const std::string source = source_of(device.facts);
        result.machine = detected_machine(gpus);
        result.comparisons = calibrate::fit_device(result.machine, calibrate::points_of(measured), source);
        if (!collectives.times.empty())
            for (auto& c : calibrate::fit_collectives(result.machine, collectives.ranks,
                                                      calibrate::points_of(collectives), source))
                result.comparisons.push_back(std::move(c));
        calibrate::name_unmeasured(result.machine.calibration, source);
        result.machine.sources.push_back("constants: " + source);
    });
    return result;
}

/// The rates that `machine detect` measures are the constants of a CPU host. Collective.
Calibrated calibrate_cpus(world::World& world, long threads) {
    const auto structure = machine::read_host_structure();
    const int of_rank = static_cast<int>(threads > 0 ? threads : std::max(1, structure.cores / world.local_size()));
    const auto rates = measure_host(world, structure, of_rank);
    Calibrated result;
    world::agree(world, [&] { result.machine = machine::make_host_machine(structure, rates, world.local_size()); });
    return result;
}

void write_file(const fs::path& file, const std::string& text) {
    // Written beside and renamed, so that nobody reads half a file.
    const fs::path unfinished = file.string() + ".new";
    std::ofstream out(unfinished);
    out << text;
    out.close();
    std::error_code error;
    if (out) fs::rename(unfinished, file, error);
    if (!out || error)
        throw RuntimeError(fmt::format("can't write {} ({}); check the folder", file.string(),
                                       error ? error.message() : "it may be missing, full or read-only"));
}

void show(const Calibrated& calibrated, const Request& request, const Globals& globals) {
    const std::string text = machine::machine_text(calibrated.machine);
    if (request.out) write_file(*request.out, text);
    if (globals.json) {
        config::Json json = config::Json::object();
        json.set("machine", report::machine_json(calibrated.machine));
        json.set("comparisons", report::comparisons_json(calibrated.comparisons));
        fmt::print("{}\n", json.dump());
        return;
    }
    const std::string tables = report::format_calibration(calibrated.machine.calibration, calibrated.comparisons);
    if (!globals.quiet) fmt::print(request.out ? stdout : stderr, "{}", tables);
    if (!request.out)
        fmt::print("{}", text);
    else if (!globals.quiet)
        fmt::print("\nwritten to {}; next: lockstep simulate EXPERIMENT --machine {}\n", request.out->string(),
                   request.out->string());
}

ExitCode calibrate_here(const Parsed& parsed) {
    const Request request = read_request(parsed);
    const long threads = parsed.integer("threads", 1).value_or(0);
    LaunchedWorld launched;
    world::World& world = launched.world();
    const RunDevice device = choose_run_device(world, request.backend);
    const auto say = [&](const std::string& text) {
        if (world.rank() == 0 && !text.empty() && !parsed.globals.quiet) fmt::print(stderr, "lockstep: {}\n", text);
    };
    say(device.notice);
    if (device.facts.is_test_double)
        say("warning: the GPUs are a test double; the constants are of this host's CPU and no measurement of a GPU");
    const bool is_gpu = device.kind == machine::DeviceKind::gpu;
    if (is_gpu && world.size() == 1)
        say("one rank measures no collectives; start one per GPU with mpirun for link, collective_base and per_hop");
    const Calibrated calibrated = is_gpu ? calibrate_gpus(world, device) : calibrate_cpus(world, threads);
    world::agree(world, [&] {
        if (world.rank() == 0) show(calibrated, request, parsed.globals);
    });
    return ExitCode::ok;
}

}  // namespace

Command calibrate_command() {
    return {"calibrate",
            {.usage = "calibrate --measure [--out FILE]",
             .about = "measure this host and write it as a machine file",
             .options = {{"measure", "", "measure rank 0's GPU and collectives over all ranks, or the CPUs"},
                         {"out", "FILE", "machine file to write (stdout)"},
                         {"force", "", "replace the file if it is there"},
                         {"backend", "NAME", "auto, gpu or cpu"},
                         {"threads", "N", "cores of one rank, on CPUs (cores / ranks)"}}},
            calibrate_here};
}

}  // namespace lockstep::cli
