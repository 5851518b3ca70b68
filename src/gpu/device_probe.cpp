#include "gpu/device_probe.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/nvml.hpp"

namespace lockstep::gpu {
namespace {

// The oldest driver of each major version of CUDA, from the toolkit's release notes.
const char* oldest_driver(int cuda_major) {
    if (cuda_major >= 13) return "580";
    return cuda_major == 12 ? "525" : "450";
}

[[noreturn]] void throw_no_driver(const Nvml& nvml) {
    int runtime = 0, driver = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    const std::string needed =
        fmt::format("CUDA {} needs driver {} or newer", cuda_version_text(runtime), oldest_driver(runtime / 1000));
    if (driver == 0)
        throw RuntimeError(
            fmt::format("no NVIDIA driver is installed here ({}); install it, or use --backend cpu", needed));
    throw RuntimeError(
        fmt::format("the NVIDIA driver is too old ({} is for CUDA {}, and {}); update it, or use --backend cpu",
                    nvml.driver_version().value_or("it"), cuda_version_text(driver), needed));
}

[[noreturn]] void throw_no_device() {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw RuntimeError(
        visible ? fmt::format("no GPU is visible (CUDA_VISIBLE_DEVICES={}); name GPUs that nvidia-smi -L lists, or "
                              "use --backend cpu",
                              visible)
                : "no GPU is here (the driver lists none); ask the scheduler for one (--gres=gpu:1), or use "
                  "--backend cpu");
}

int count_devices(const Nvml& nvml) {
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess) cudaGetLastError();
    if (result == cudaErrorInsufficientDriver) throw_no_driver(nvml);
    if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) throw_no_device();
    if (result == cudaErrorSystemNotReady)
        throw RuntimeError(
            "the GPUs are not ready (cudaErrorSystemNotReady): on machines with NVSwitches NVIDIA's fabric manager "
            "must run; start nvidia-fabricmanager");
    check_cuda(result, "cudaGetDeviceCount");
    return count;
}

// Not told: 0.
int attribute(cudaDeviceAttr which, int ordinal) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess) return value;
    cudaGetLastError();
    return 0;
}

std::string uuid_text(const cudaUUID_t& uuid, bool is_mig) {
    std::string text = is_mig ? "MIG-" : "GPU-";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

std::string pci_bus_id(int ordinal) {
    std::array<char, 32> text{};
    check_cuda(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), ordinal), "cudaDeviceGetPCIBusId");
    std::string id(text.data());
    // As the system's folders are named.
    std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) { return std::tolower(c); });
    return id;
}

GpuFacts facts_of(int ordinal, const Nvml& nvml) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    GpuFacts facts;
    facts.ordinal = ordinal;
    facts.name = properties.name;
    facts.pci_bus_id = pci_bus_id(ordinal);
    facts.compute_major = properties.major;
    facts.compute_minor = properties.minor;
    facts.multiprocessors = properties.multiProcessorCount;
    facts.memory = Bytes{static_cast<double>(properties.totalGlobalMem)};
    facts.l2_cache = Bytes{static_cast<double>(properties.l2CacheSize)};
    facts.clock = Frequency{attribute(cudaDevAttrClockRate, ordinal) * 1e3};
    // Two transfers per clock, of one bit per line.
    facts.memory_bandwidth =
        Bandwidth{2.0 * attribute(cudaDevAttrMemoryClockRate, ordinal) * 1e3 * properties.memoryBusWidth / 8};
    facts.is_test_double = facts.name.starts_with("test double");

    std::string ignored;
    const auto device = nvml.device(facts.pci_bus_id, ignored);
    facts.is_mig = facts.name.find(" MIG ") != std::string::npos || (device && device->has_mig_instances());
    if (device && !facts.is_mig) facts.free_memory = device->free_memory().value_or(Bytes{});
    facts.uuid = uuid_text(properties.uuid, facts.is_mig);
    facts.numa_node = pci_numa_node(facts.pci_bus_id);
    if (facts.numa_node < 0) {
        // cudaDevAttrHostNumaId; toolkits before 12.2 have no name for it, and their drivers no answer.
        constexpr auto host_numa_id = static_cast<cudaDeviceAttr>(134);
        int node = -1;
        if (cudaDeviceGetAttribute(&node, host_numa_id, ordinal) == cudaSuccess)
            facts.numa_node = node;
        else
            cudaGetLastError();
    }
    return facts;
}

}  // namespace

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

int pci_numa_node(const std::string& pci_bus_id, const std::filesystem::path& devices) {
    std::ifstream file(devices / pci_bus_id / "numa_node");
    int node = -1;
    return file >> node ? node : -1;
}

std::vector<GpuFacts> probe_devices() {
    const Nvml nvml;
    const int count = count_devices(nvml);
    std::vector<GpuFacts> devices;
    for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back(facts_of(ordinal, nvml));
    return devices;
}

}  // namespace lockstep::gpu
