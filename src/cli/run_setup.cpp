#include "cli/run_setup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "cli/inputs.hpp"
#include "cli/version.hpp"
#include "drive/describe.hpp"
#include "machine/host_probe.hpp"
#include "world/agree.hpp"

namespace lockstep::cli {

namespace {

Check parse_check(const std::string& name) {
    if (name == "wire") return Check::wire;
    if (name == "numeric") return Check::numeric;
    throw UsageError(fmt::format("--check wants wire or numeric, got '{}'", name));
}

/// The CPUs this process may run on, as the kernel lists them: "0-3,8".
std::string allowed_cpus() {
    std::ifstream status("/proc/self/status");
    const std::string key = "Cpus_allowed_list:";
    for (std::string line; std::getline(status, line);)
        if (line.rfind(key, 0) == 0) return line.substr(line.find_first_not_of(" \t", key.size()));
    return "";
}

}  // namespace

RunRequest read_run_request(const Parsed& parsed) {
    RunRequest request;
    request.out = parsed.value("out");
    if (const auto out = environment("LOCKSTEP_OUT"); !request.out && !out.empty()) request.out = out;
    if (request.out && request.out->empty()) throw UsageError("--out wants the name of a folder");
    request.steps = parsed.integer("steps", 1);
    request.warmup = parsed.integer("warmup", 0);
    if (const auto check = parsed.value("check")) request.check = parse_check(*check);
    Parsed from_environment;
    if (const auto timeout = environment("LOCKSTEP_TIMEOUT"); !timeout.empty())
        from_environment.values["timeout"] = {timeout};
    if (const auto timeout = parsed.has("timeout") ? parsed.seconds("timeout") : from_environment.seconds("timeout"))
        request.timeout = *timeout;
    const auto backend = environment("LOCKSTEP_BACKEND");
    request.backend = parse_backend(parsed.value("backend").value_or(backend.empty() ? "auto" : backend));
    return request;
}

LaunchedWorld::LaunchedWorld() {
    const world::Launcher launcher = world::detect_launcher();
    world::keep_large_blocks();
    if (launcher.kind == world::Launcher::Kind::none) {
        world_ = world::make_self_world();
        return;
    }
    static char program[] = "lockstep";
    static char* arguments[] = {program, nullptr};
    int argc = 1;
    char** argv = arguments;
    mpi_ = std::make_unique<world::MpiSession>(argc, argv);
    world_ = mpi_->world();
}

LaunchedWorld::~LaunchedWorld() = default;

experiment::Experiment single_point(const experiment::LoadedExperiments& experiments) {
    if (experiments.points.size() == 1) return experiments.points.front();
    std::string labels;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, experiments.points.size()); ++i)
        labels += "\n  " + experiments.points[i].label;
    throw InputError(fmt::format(
        "{} holds {} points and 'run' executes one; choose with --set, for example --set model=NAME. Points:{}{}",
        experiments.file.string(), experiments.points.size(), labels, experiments.points.size() > 4 ? "\n  ..." : ""));
}

std::map<std::string, std::string> run_provenance(const step::Executor& executor, const RunDevice& device) {
    auto provenance = versions();
    const auto info = executor.info();
    provenance["executor"] = info.backend + ": " + info.device;
    provenance["executor_details"] = info.details;
    provenance.insert(info.facts.begin(), info.facts.end());
    std::ifstream command("/proc/self/cmdline", std::ios::binary);
    std::string argv((std::istreambuf_iterator<char>(command)), std::istreambuf_iterator<char>());
    std::replace(argv.begin(), argv.end(), '\0', ' ');
    provenance["argv"] = argv;
    if (device.backend != nullptr) provenance.merge(device.backend->provenance());
    const auto variables = record::recorded_environment();
    provenance.insert(variables.begin(), variables.end());
    return provenance;
}

std::vector<std::string> run_warnings(world::World& world, const experiment::Experiment& experiment,
                                      const RunDevice& device) {
    std::vector<std::string> warnings;
    if (std::find(experiment.ranks.begin(), experiment.ranks.end(), world.size()) == experiment.ranks.end())
        warnings.push_back(fmt::format("{} ranks are not among the experiment's [{}]", world.size(),
                                       fmt::join(experiment.ranks, ", ")));
    const std::string intended = drive::machine_title(experiment.machine);
    if (intended != "host")
        warnings.push_back(fmt::format("the experiment names {}; this run measures the host it is on", intended));
    if (const auto knobs = experiment.knobs.names(); !knobs.empty())
        warnings.push_back(fmt::format("knobs.{}: predictions alone turn knobs; this run measures the host as it is",
                                       fmt::join(knobs, ", ")));
    if (device.facts.is_test_double)
        warnings.push_back(fmt::format("{} is no GPU: its times say nothing about one", device.facts.name));
    // Collective: of any rank.
    const int notices = world::count_true(world, device.kind == machine::DeviceKind::gpu && !device.notice.empty());
    if (notices > 0)
        warnings.push_back(fmt::format("{} of {} ranks are bound to cores away from their GPU{}{}", notices,
                                       world.size(), device.notice.empty() ? "" : ": ", device.notice));
    if (device.kind == machine::DeviceKind::gpu) return warnings;
    const int threads = device.threads;
    const auto structure = machine::read_host_structure();
    if (world::count_true(world, structure.allowed_cores < threads) > 0)
        warnings.push_back(fmt::format("a rank of {} threads may use {} core only; start mpirun with --bind-to none",
                                       threads, structure.allowed_cores));
    if (threads * world.local_size() > structure.cores)
        warnings.push_back(fmt::format("{} ranks of {} threads share {} cores; their times say little about scaling",
                                       world.local_size(), threads, structure.cores));
    return warnings;
}

record::RankDescription describe_rank(world::World& world, const step::Executor& executor, const RunDevice& device,
                                      const world::ClockOffset& clock, Nanoseconds epoch) {
    record::RankDescription rank;
    rank.rank = world.rank();
    rank.local_rank = world.local_rank();
    rank.host = world.host();
    const step::ExecutorInfo info = executor.info();
    rank.device = info.device;
    rank.uuid = device.facts.uuid;
    rank.is_sampled = info.samples_device;
    rank.facts = info.facts;
    rank.cpuset = allowed_cpus();
    rank.threads = device.threads;
    // Times count from each rank's own epoch; rank 0's is the run's.
    std::int64_t root_epoch = (epoch + clock.offset).count;
    world.broadcast(std::as_writable_bytes(std::span(&root_epoch, 1)), 0);
    rank.clock_offset = epoch + clock.offset - Nanoseconds{root_epoch};
    rank.clock_uncertainty = clock.uncertainty;
    return rank;
}

std::string next_step_hint(const experiment::Experiment& experiment, const std::string& written_as, int ranks) {
    const auto larger = [&](int other) { return other > ranks; };
    std::vector<int> rest;
    std::copy_if(experiment.ranks.begin(), experiment.ranks.end(), std::back_inserter(rest), larger);
    if (rest.empty()) return "";
    const int next = *std::min_element(rest.begin(), rest.end());
    // Open MPI starts no more ranks than there are cores unless it is told to.
    const char* more = next > machine::read_host_structure().cores ? " --oversubscribe" : "";
    return fmt::format("ran {} of [{}]; next: mpirun --bind-to none{} -n {} lockstep run {}\n", ranks,
                       fmt::join(experiment.ranks, ", "), more, next, written_as);
}

}  // namespace lockstep::cli
