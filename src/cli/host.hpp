// The host as a machine: its rates are measured once and kept.
#pragma once

#include "machine/host_probe.hpp"
#include "machine/machine.hpp"
#include "world/world.hpp"

namespace lockstep::cli {

/// Cores of one rank: `requested`, or the host's cores / the largest entry of `ranks` that has a core for each rank.
int threads_per_rank(const machine::HostStructure& structure, int requested, const std::vector<int>& ranks);

/// Measures the rates of this host with all ranks of `world` (about 2 seconds) and keeps them. Collective; only ranks
/// on rank 0's host count.
machine::HostRates measure_host(world::World& world, const machine::HostStructure& structure, int threads);

/// Kept rates that hold for ranks of `threads` cores, with collective constants when `ranks` > 1; measured now by all
/// ranks of `world` when there are none. Collective.
machine::HostRates rates_for_run(world::World& world, const machine::HostStructure& structure, int threads);

/// The same for a prediction: when there are none, `mpirun -n 2 lockstep machine detect` is started as a child to
/// measure them. Throws RuntimeError naming that command when it can't be.
machine::HostRates rates_for_prediction(const machine::HostStructure& structure, int threads, int ranks);

}  // namespace lockstep::cli
