// The parts of `lockstep run` around its steps: what was asked for, the launched world, and what is recorded of the
// host.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/backends.hpp"
#include "cli/options.hpp"
#include "drive/stop_signals.hpp"
#include "experiment/experiment.hpp"
#include "record/run_description.hpp"
#include "step/executor.hpp"
#include "world/clock_sync.hpp"
#include "world/world.hpp"

namespace lockstep::cli {

enum class Check { none, wire, numeric };

struct RunRequest {
    std::optional<std::string> out;
    std::optional<long> steps, warmup;
    BackendChoice backend = BackendChoice::automatic;
    Check check = Check::none;
    Seconds timeout{300};
};
/// Options, then LOCKSTEP_OUT, LOCKSTEP_BACKEND, LOCKSTEP_TIMEOUT. Throws UsageError.
RunRequest read_run_request(const Parsed& parsed);

/// The world of the launcher, or of this process alone without one; signals are taken before MPI starts its threads.
class LaunchedWorld {
public:
    LaunchedWorld();
    ~LaunchedWorld();
    world::World& world() { return *world_; }
    drive::StopSignals& signals() { return signals_; }

private:
    drive::StopSignals signals_;
    std::unique_ptr<world::MpiSession> mpi_;
    std::unique_ptr<world::World> world_;
};

/// The only point of an experiment file. Throws InputError naming the lists when there are several.
experiment::Experiment single_point(const experiment::LoadedExperiments& experiments);

std::map<std::string, std::string> run_provenance(const step::Executor& executor, const RunDevice& device);
/// World size not in the experiment's list, a machine that is not this one, a narrow cpuset, more threads than cores.
/// Collective.
std::vector<std::string> run_warnings(world::World& world, const experiment::Experiment& experiment,
                                      const RunDevice& device);
record::RankDescription describe_rank(world::World& world, const step::Executor& executor, const RunDevice& device,
                                      const world::ClockOffset& clock, Nanoseconds epoch);
/// "ran 1 of [1, 2]; next: mpirun -n 2 lockstep run WRITTEN_AS", or "" when no larger world is listed.
std::string next_step_hint(const experiment::Experiment& experiment, const std::string& written_as, int ranks);

}  // namespace lockstep::cli
