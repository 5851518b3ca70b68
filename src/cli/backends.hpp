// What this program can execute on: CPUs always, GPUs through a module that is loaded when one is asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/backend.hpp"
#include "machine/machine.hpp"
#include "step/executor.hpp"
#include "world/world.hpp"

namespace lockstep::cli {

enum class BackendChoice { automatic, cpu, gpu };
/// --backend, then LOCKSTEP_BACKEND, then auto. Throws UsageError for another word.
BackendChoice parse_backend(const std::string& name);

/// The GPU module beside this program, or why it can't be had: not built, or a library of it is missing on this host.
struct LoadedGpu {
    gpu::Backend* backend = nullptr;
    std::string why_not;  ///< with what to do
};
LoadedGpu load_gpu();

/// The visible GPUs, or why there are none.
struct VisibleGpus {
    std::vector<gpu::GpuFacts> devices;
    std::string why_not;
};
VisibleGpus visible_gpus(const LoadedGpu& loaded);

/// What a rank runs on.
struct RunDevice {
    machine::DeviceKind kind = machine::DeviceKind::cpu;
    gpu::Backend* backend = nullptr;  ///< of a GPU
    gpu::GpuFacts facts;
    int threads = 1;  ///< of a CPU rank
    std::string cpu_model;
    std::string notice;  ///< why a CPU was chosen where a GPU might be expected, or of a bad binding; empty: nothing
};

/// The GPU of this rank, or its share of the host. `automatic` takes GPUs when every rank has one and says in the
/// notice why not; `gpu` throws RuntimeError then, on all ranks. Collective.
RunDevice choose_run_device(world::World& world, BackendChoice choice);

struct ExecutorRequest {
    Nanoseconds epoch{};
    Seconds timeout{300};
    int record_every = 0;
};
/// Collective.
std::unique_ptr<step::Executor> make_executor(world::World& world, const RunDevice& device,
                                              const ExecutorRequest& request);

/// The described device that a driver calls by this name ("NVIDIA H100 80GB HBM3"), or one made of what the driver
/// tells, without peak rates, so that no MFU is computed from a guess.
machine::Device device_of(const gpu::GpuFacts& facts);
/// This host as a machine of `gpus` such devices, for the record of a run.
machine::Machine gpu_host_machine(const gpu::GpuFacts& facts, int gpus);

}  // namespace lockstep::cli
