// lockstep run: executes an experiment for real under the present launcher.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "analysis/analyze.hpp"
#include "cli/command.hpp"
#include "cli/host.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"
#include "cli/results.hpp"
#include "cli/run_setup.hpp"
#include "cpu/cpu_executor.hpp"
#include "drive/describe.hpp"
#include "drive/numeric_check.hpp"
#include "drive/progress.hpp"
#include "drive/run_loop.hpp"
#include "record/live_writer.hpp"
#include "record/run_file.hpp"
#include "record/run_reader.hpp"
#include "world/agree.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::cli {

namespace {

/// Above this a merge on rank 0 would keep the others waiting; analysis reads the rank files, `lockstep repair` merges
/// them later.
constexpr int most_merged_ranks = 64;

struct Prepared {
    experiment::Experiment experiment;
    machine::Machine machine;
    step::StepGraph graph;
    RunDevice device;
};

/// What a rank may fill, and how a message calls it.
struct Room {
    Bytes bytes;
    std::string of;
};
Room room_of(const world::World& world, const RunDevice& device, const machine::HostStructure& structure) {
    if (device.kind == machine::DeviceKind::gpu)
        return {device.facts.free_memory, fmt::format("what is free on {}", device.facts.name)};
    return {structure.memory / static_cast<double>(world.local_size()),
            fmt::format("a rank's share of {}", structure.cpu_model)};
}

/// What the executor allocates for a rank: the peak by category, the arena in all.
step::MemoryUse needed_memory(const step::StepGraph& graph, int rank) {
    const step::MemoryPlan plan = step::plan_memory(graph, graph.rank_class(rank));
    step::MemoryUse use = plan.peak;
    use.total = Bytes{static_cast<double>(plan.arena_bytes)};
    return use;
}

Prepared prepare_run(world::World& world, const RunRequest& request, const std::vector<std::string>& words,
                     const Globals& globals) {
    Prepared prepared;
    machine::HostStructure structure;
    prepared.device = choose_run_device(world, request.backend);
    const bool is_gpu = prepared.device.kind == machine::DeviceKind::gpu;
    if (world.rank() == 0 && !prepared.device.notice.empty() && !globals.quiet)
        fmt::print(stderr, "lockstep: {}\n", prepared.device.notice);
    world::agree(world, [&] {
        const LoadedInput input = load_input(words[0], globals);
        prepared.experiment = for_device(single_point(input.experiments), prepared.device.kind);
        if (const std::string why = model::why_only_simulated(prepared.experiment.model); !why.empty())
            throw InputError(fmt::format("model '{}' can't be run ({}); use lockstep simulate",
                                         prepared.experiment.model.name, why));
        if (request.steps) prepared.experiment.steps = static_cast<int>(*request.steps);
        if (request.warmup) prepared.experiment.warmup = static_cast<int>(*request.warmup);
        structure = machine::read_host_structure();
        prepared.device.threads =
            threads_per_rank(structure, prepared.experiment.threads_per_rank, prepared.experiment.ranks);
        const machine::Placement placement{world.size(), world.local_size()};
        const plan::Plan plan = prepared.experiment.plan_for(placement);
        prepared.graph = build_graph(prepared.experiment, plan, placement);
        if (!is_gpu) cpu::check_precision(prepared.graph);
        const Room room = room_of(world, prepared.device, structure);
        const std::string excess = drive::why_too_large(needed_memory(prepared.graph, world.rank()), room.bytes,
                                                        room.of, memory_of(prepared.experiment, plan, placement));
        if (!excess.empty()) throw InputError("the step " + excess);
    });
    prepared.machine =
        is_gpu ? gpu_host_machine(prepared.device.facts, world.local_size())
               : machine::make_host_machine(structure, rates_for_run(world, structure, prepared.device.threads),
                                            world.local_size());
    return prepared;
}

void run_numeric_check(world::World& world, const Prepared& prepared) {
    if (prepared.experiment.collective)
        throw InputError(
            "--check=numeric compares gradients with those of the unsplit model, and a collective has none; "
            "use --check=wire");
    if (prepared.experiment.precision != Precision::fp32)
        throw InputError("--check=numeric compares in fp32; add --set precision=fp32");
    plan::Plan alone = prepared.experiment.plan_for({world.size(), world.local_size()});
    // Random draws are keyed by an element's place in the global tensor, which has the batch inside the sequence for
    // tokens; batch norm wants the same images together as the split step.
    if (prepared.experiment.model.inputs.front().kind == model::Input::Kind::image)
        alone.accumulation *= alone.mesh.replicas();
    else
        alone.micro_batch *= alone.mesh.replicas();
    alone.mesh = {};
    alone.split = {};
    const step::StepGraph unsplit = build_graph(prepared.experiment, alone, {1, 1});
    const auto make = [&](world::World& own) {
        return make_executor(own, prepared.device, {.epoch = world::steady_now()});
    };
    const auto report = drive::check_numeric(world, make, prepared.graph, unsplit);
    if (world.rank() == 0)
        fmt::print(
            stderr,
            "numeric check passed: loss {:.6f} split, {:.6f} unsplit; {} gradients, largest relative L2 {:.1e} ({})\n",
            report.loss_split, report.loss_unsplit, report.gradients, report.worst_relative_l2, report.worst_gradient);
}

std::filesystem::path agree_on_folder(world::World& world, const RunRequest& request, const std::string& experiment) {
    std::string folder;
    world::agree(world, [&] {
        if (world.rank() != 0) return;
        folder = request.out ? *request.out : record::default_run_folder(experiment, world.size()).string();
        record::make_run_folder(folder);
    });
    return world::broadcast_string(world, folder, 0);
}

record::RunDescription describe(world::World& world, const Prepared& prepared, const step::Executor& executor,
                                Nanoseconds epoch_utc) {
    const auto origin = prepared.device.facts.is_test_double ? record::Origin::rehearsed : record::Origin::measured;
    auto run = drive::describe_run(prepared.experiment, prepared.graph, prepared.machine, origin, executor);
    run.warmup_steps = prepared.experiment.warmup;
    run.planned_steps = prepared.experiment.warmup + prepared.experiment.steps;
    run.epoch_utc = epoch_utc;
    run.provenance = run_provenance(executor, prepared.device);
    run.warnings = run_warnings(world, prepared.experiment, prepared.device);
    return run;
}

drive::LoopOutcome measure(world::World& world, const Prepared& prepared, const RunRequest& request,
                           drive::StopSignals& signals, const std::filesystem::path& folder, const Globals& globals) {
    const Nanoseconds epoch = world::steady_now();
    const Nanoseconds epoch_utc = world::utc_now();
    const auto clock = world::measure_clock_offset(world);
    std::unique_ptr<step::Executor> executor;
    std::optional<record::LiveWriter> writer;
    record::RunDescription run;
    world::agree(
        world, [&] { executor = make_executor(world, prepared.device, {.epoch = epoch, .timeout = request.timeout}); });
    executor->prepare(prepared.graph);
    if (request.check == Check::wire) {
        executor->check_wire();
        if (world.rank() == 0)
            fmt::print(stderr, "wire check passed: every communicator of {} ranks carries what is sent\n",
                       world.size());
    }
    run = describe(world, prepared, *executor, epoch_utc);
    const auto rank = describe_rank(world, *executor, prepared.device, clock, epoch);
    world::agree(world, [&] { writer.emplace(record::rank_file(folder, world.rank()), run, rank, prepared.graph); });

    const auto mode =
        globals.quiet || world.rank() != 0 ? drive::Progress::Mode::silent : drive::Progress::mode_for_stderr();
    drive::Progress progress(
        mode, fmt::format("{} on {} rank{}", run.model, world.size(), world.size() == 1 ? "" : "s"), run.planned_steps);
    drive::LoopOptions options{.steps = run.planned_steps, .timeout = request.timeout, .on_step = {}};
    options.on_step = [&](const step::StepRecord& record) {
        // Only the last stage of a pipeline has a loss.
        const std::string loss = std::isnan(record.loss) ? "" : fmt::format("loss {:.4f}", record.loss);
        progress.show(record.step + 1, loss + (record.step < run.warmup_steps ? " (warm-up)" : ""));
    };
    const auto outcome = drive::run_loop(world, *executor, *writer, &signals, options);
    progress.finish();
    writer->close();
    world.barrier();
    return outcome;
}

void show(const std::filesystem::path& folder, const Prepared& prepared, const std::string& written_as, int ranks,
          const Globals& globals) {
    const record::RunReader reader(folder);
    auto findings = analysis::analyze_run(reader);
    const auto series = analysis::make_series({findings}, {reader.run().series_text}, std::nullopt);
    print_results({series}, {}, globals);
    if (globals.quiet || globals.json) return;
    fmt::print("recorded in {}\n{}", folder.string(), next_step_hint(prepared.experiment, written_as, ranks));
}

ExitCode run(const Parsed& parsed) {
    const RunRequest request = read_run_request(parsed);
    if (parsed.globals.print_config) {
        print_config(load_input(parsed.words[0], parsed.globals));
        return ExitCode::ok;
    }
    LaunchedWorld launched;
    world::World& world = launched.world();
    const Prepared prepared = prepare_run(world, request, parsed.words, parsed.globals);
    if (request.check == Check::numeric) run_numeric_check(world, prepared);
    const auto folder = agree_on_folder(world, request, prepared.experiment.name);
    const auto outcome = measure(world, prepared, request, launched.signals(), folder, parsed.globals);
    world::agree(world, [&] {
        if (world.rank() != 0) return;
        if (world.size() <= most_merged_ranks) record::merge_run(folder);
        if (outcome.steps > prepared.experiment.warmup)
            show(folder, prepared, parsed.words[0], world.size(), parsed.globals);
    });
    const std::string stopped = fmt::format("stopped after step {} of {}; its finished steps are in {}", outcome.steps,
                                            prepared.experiment.warmup + prepared.experiment.steps, folder.string());
    if (outcome.stopped_by == drive::StopRequest::urgent)
        throw RuntimeError("a TERM or INT signal arrived: " + stopped);
    if (outcome.stopped_by == drive::StopRequest::graceful && world.rank() == 0)
        fmt::print(stderr, "lockstep: USR1: {}\n", stopped);
    return ExitCode::ok;
}

}  // namespace

Command run_command() {
    return {"run",
            {.usage = "run EXPERIMENT",
             .about = "execute for real, under mpirun or srun",
             .options = {{"backend", "NAME", "auto, gpu or cpu"},
                         {"out", "DIR", "folder of the run (new or empty)"},
                         {"steps", "N", "counted steps"},
                         {"warmup", "N", "steps before them"},
                         {"check", "KIND", "wire or numeric, before the first step"},
                         {"timeout", "S", "end the run when no step finishes for so long (300)"}},
             .least_words = 1,
             .most_words = 1},
            run};
}

}  // namespace lockstep::cli
