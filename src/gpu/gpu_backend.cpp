#include "gpu/gpu_backend.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "base/error.hpp"
#include "gpu/benchmark.hpp"
#include "gpu/collective_benchmark.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/device_links.hpp"
#include "gpu/device_probe.hpp"
#include "gpu/gpu_executor.hpp"
#include "gpu/libraries.hpp"
#include "gpu/numa.hpp"
#include "gpu/nvml.hpp"
#include "gpu/rank_device.hpp"
#include "world/agree.hpp"

namespace lockstep::gpu {
namespace {

/// Of each figure: what is measured there means nothing, and takes long.
constexpr Seconds test_double_budget{2e-3};

}  // namespace

std::vector<GpuFacts> GpuBackend::devices() { return probe_devices(); }

int GpuBackend::choose_device(world::World& world) {
    std::vector<GpuFacts> visible;
    world::agree(world, [&] { visible = probe_devices(); });
    return gpu::choose_device(world, visible);
}

std::string GpuBackend::binding_warning(int ordinal) {
    return numa_warning(probe_devices().at(static_cast<std::size_t>(ordinal)), allowed_numa_nodes());
}

GpuLinks GpuBackend::links(int ordinal) {
    return links_of(probe_devices().at(static_cast<std::size_t>(ordinal)).pci_bus_id);
}

DeviceMeasurement GpuBackend::measure(int ordinal) {
    const GpuFacts facts = probe_devices().at(static_cast<std::size_t>(ordinal));
    check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
    BenchmarkOptions options;
    if (facts.is_test_double) options.budget = options.longest = test_double_budget;
    return measure_device(options);
}

CollectiveMeasurement GpuBackend::measure_collectives(world::World& world, int ordinal) {
    constexpr Seconds timeout{60};
    std::string self;
    bool is_test_double = false;
    world::agree(world, [&] {
        is_test_double = probe_devices().at(static_cast<std::size_t>(ordinal)).is_test_double;
        check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
        self = describe_rank(world);
    });
    NcclCommunicator communicator(meet(world, "of all ranks", self), timeout);
    CollectiveOptions options;
    if (is_test_double) options.budget = options.longest = test_double_budget;
    return gpu::measure_collectives(world, communicator, options);
}

std::unique_ptr<step::Executor> GpuBackend::executor(world::World& world, const GpuOptions& options) {
    return std::make_unique<GpuExecutor>(world, options, probe_devices().at(static_cast<std::size_t>(options.device)));
}

std::string GpuBackend::versions() { return library_versions(); }

std::map<std::string, std::string> GpuBackend::provenance() {
    std::map<std::string, std::string> provenance{{"gpu_libraries", library_versions()}};
    const Nvml nvml;
    provenance["nvidia_driver"] = nvml.driver_version().value_or("not told: " + nvml.absent());
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess)
        provenance["nvidia_driver_cuda"] = driver > 0 ? cuda_version_text(driver) : "none";
    try {
        for (const GpuFacts& gpu : probe_devices())
            provenance[fmt::format("gpu{}", gpu.ordinal)] =
                fmt::format("{}, {}, {}", gpu.name, gpu.uuid, gpu.pci_bus_id);
    } catch (const RuntimeError& error) { provenance["gpu0"] = std::string("none: ") + error.what(); }
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const std::size_t equals = text.find('=');
        if (text.starts_with("NCCL_") && equals != std::string_view::npos)
            provenance[fmt::format("env.{}", text.substr(0, equals))] = text.substr(equals + 1);
    }
    return provenance;
}

}  // namespace lockstep::gpu
