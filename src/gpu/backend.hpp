// What the program sees of the GPU module: its one symbol returns a Backend. Nothing here needs CUDA's headers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"
#include "gpu/links.hpp"
#include "gpu/measurement.hpp"
#include "step/executor.hpp"
#include "world/world.hpp"

namespace lockstep::gpu {

/// A GPU that this process sees.
struct GpuFacts {
    int ordinal = 0;   ///< among the visible ones
    std::string name;  ///< "NVIDIA H100 80GB HBM3"; of a test double "test double of ..."
    std::string uuid;  ///< "GPU-..." or "MIG-..."
    std::string pci_bus_id;
    int compute_major = 0, compute_minor = 0;
    int multiprocessors = 0;
    Bytes memory, free_memory;
    Bytes l2_cache;
    Bandwidth memory_bandwidth;  ///< of the memory's clock and bus width; 0: not told
    Frequency clock;             ///< largest of the multiprocessors
    int numa_node = -1;          ///< of the PCIe device; -1: not told
    bool is_mig = false;
    bool is_test_double = false;
};

struct GpuOptions {
    int device = 0;        ///< ordinal
    Nanoseconds epoch{};   ///< on world::steady_now(): spans count from here
    Seconds timeout{300};  ///< of making communicators; steps are watched by the driver
    int record_every = 0;  ///< spans of each k-th step; 0: as often as keeps it below 0.5 % of a step
};

class Backend {
public:
    virtual ~Backend() = default;
    /// The visible GPUs. Throws RuntimeError that says what is missing (driver, device).
    virtual std::vector<GpuFacts> devices() = 0;
    /// The ordinal of this rank's GPU: the only visible one, or by local rank. Throws on all ranks, before NCCL could
    /// hang, for two ranks on one GPU, more ranks than GPUs, and MIG instances. Collective.
    virtual int choose_device(world::World& world) = 0;
    /// Of a rank whose cores are on another NUMA node than its GPU; empty when they are not, or it isn't known.
    virtual std::string binding_warning(int ordinal) = 0;
    /// Makes the device current for the calling thread. `world` must outlive the executor. Collective.
    virtual std::unique_ptr<step::Executor> executor(world::World& world, const GpuOptions& options) = 0;
    /// What connects one of the visible GPUs.
    virtual GpuLinks links(int ordinal) = 0;
    /// What one of the visible GPUs can do, in about 5 s, during which nothing else should run on it.
    virtual DeviceMeasurement measure(int ordinal) = 0;
    /// How long collectives over all ranks take, in a few seconds. Collective; `ordinal` as choose_device gives it.
    virtual CollectiveMeasurement measure_collectives(world::World& world, int ordinal) = 0;
    /// "CUDA 13.0, cuBLASLt 13.1.0, cuDNN 9.19.0, NCCL 2.28.9"
    virtual std::string versions() = 0;
    /// Driver, versions, NCCL_* variables that steer it: for the provenance of a run.
    virtual std::map<std::string, std::string> provenance() = 0;
};

/// The module's symbol, of this type.
using BackendFunction = Backend* (*)();
inline constexpr const char* backend_symbol = "lockstep_gpu_backend";

}  // namespace lockstep::gpu
