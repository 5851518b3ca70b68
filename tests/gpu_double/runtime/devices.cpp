// Devices: how many, which is current, what they are.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gpu_double/runtime/api.hpp"
#include "gpu_double/runtime/device_set.hpp"

namespace lockstep::gpu_double {
namespace {

thread_local int current_ordinal = 0;

cudaError_t device_at(int ordinal, Device& device) {
    const auto visible = visible_devices();
    const std::vector<Device>& devices = *visible;
    if (devices.empty()) return cudaErrorNoDevice;
    if (ordinal < 0 || ordinal >= static_cast<int>(devices.size())) return cudaErrorInvalidDevice;
    device = devices[static_cast<std::size_t>(ordinal)];
    return cudaSuccess;
}

int numa_node(const Device& device) {
    const auto now = controls();
    const auto number = static_cast<std::size_t>(device.number);
    return number < now->numa.size() ? now->numa[number] : -1;
}

// Figures of an H100 SXM, as its name says.
constexpr int major = 9, minor = 0, multiprocessors = 132, l2_bytes = 50 << 20, bus_bits = 5120;
constexpr int clock_khz = 1980000, memory_khz = 2619000;
constexpr int block_shared = 48 << 10, block_shared_optin = 227 << 10, block_threads = 1024;

cudaDeviceProp properties_of(const Device& device) {
    const auto now = controls();
    cudaDeviceProp p{};
    const std::string name = "test double of " + now->name + (now->mig ? " MIG 1g.10gb" : "");
    std::memcpy(p.name, name.c_str(), std::min(name.size(), sizeof p.name - 1));
    p.uuid = device.uuid;
    p.totalGlobalMem = now->memory;
    p.major = major;
    p.minor = minor;
    p.multiProcessorCount = now->mig ? 16 : multiprocessors;
    p.l2CacheSize = l2_bytes;
    p.memoryBusWidth = bus_bits;
    p.pciDomainID = device.pci_domain;
    p.pciBusID = device.pci_bus;
    p.warpSize = 32;
    p.maxThreadsPerBlock = block_threads;
    p.sharedMemPerBlock = block_shared;
    p.sharedMemPerBlockOptin = block_shared_optin;
    p.maxThreadsPerMultiProcessor = 2048;
    p.concurrentKernels = p.unifiedAddressing = p.canMapHostMemory = p.streamPrioritiesSupported = 1;
    p.asyncEngineCount = 3;
    p.hostNumaId = numa_node(device);
    return p;
}

cudaError_t attribute_of(const Device& device, cudaDeviceAttr attribute, int& value) {
    switch (attribute) {
        case cudaDevAttrClockRate: value = clock_khz; break;
        case cudaDevAttrMemoryClockRate: value = memory_khz; break;
        case cudaDevAttrGlobalMemoryBusWidth: value = bus_bits; break;
        case cudaDevAttrL2CacheSize: value = l2_bytes; break;
        case cudaDevAttrMultiProcessorCount: value = properties_of(device).multiProcessorCount; break;
        case cudaDevAttrComputeCapabilityMajor: value = major; break;
        case cudaDevAttrComputeCapabilityMinor: value = minor; break;
        case cudaDevAttrMaxThreadsPerBlock: value = block_threads; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: value = block_shared; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: value = block_shared_optin; break;
        case cudaDevAttrHostNumaId: value = numa_node(device); break;
        default:
            return misuse(cudaErrorInvalidValue, fmt::format("cudaDeviceGetAttribute: the double doesn't know {}",
                                                             static_cast<int>(attribute)));
    }
    return cudaSuccess;
}

}  // namespace

int current_device() {
    Device device;
    return device_at(current_ordinal, device) == cudaSuccess ? device.number : -1;
}

}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = controls()->driver;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 0;
    return api("cudaGetDeviceCount", [&] {
        *count = static_cast<int>(visible_devices()->size());
        return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
    });
}

cudaError_t cudaSetDevice(int ordinal) {
    return api("cudaSetDevice", [&] {
        Device device;
        const cudaError_t result = device_at(ordinal, device);
        if (result == cudaSuccess) current_ordinal = ordinal;
        return result;
    });
}

cudaError_t cudaGetDevice(int* ordinal) {
    return api("cudaGetDevice", [&] {
        Device device;
        *ordinal = current_ordinal;
        return device_at(current_ordinal, device);
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
    return api("cudaGetDeviceProperties", [&] {
        Device device;
        const cudaError_t result = device_at(ordinal, device);
        if (result == cudaSuccess) *properties = properties_of(device);
        return result;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
    return api("cudaDeviceGetAttribute", [&] {
        Device device;
        const cudaError_t result = device_at(ordinal, device);
        return result == cudaSuccess ? attribute_of(device, attribute, *value) : result;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
    return api("cudaDeviceGetPCIBusId", [&] {
        Device device;
        const cudaError_t result = device_at(ordinal, device);
        if (result != cudaSuccess) return result;
        const std::string id = pci_bus_id(device);
        if (static_cast<int>(id.size()) >= length) return cudaErrorInvalidValue;
        std::memcpy(text, id.c_str(), id.size() + 1);
        return cudaSuccess;
    });
}
}
