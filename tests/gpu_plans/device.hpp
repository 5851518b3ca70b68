// GPUs that are not here, in the words of cuDNN's device properties.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "gpu/dnn_backend.hpp"

namespace lockstep::gpu::testing {

struct Device {
    const char* name;
    int capability;  ///< 100 x major + 10 x minor
    int multiprocessors, shared_memory;
};
inline constexpr Device a100{"NVIDIA A100-SXM4-80GB", 800, 108, 166912};
inline constexpr Device h100{"NVIDIA H100 80GB HBM3", 900, 132, 232448};
inline constexpr Device b200{"NVIDIA B200", 1000, 148, 232448};

inline std::string json_of(const Device& d) {
    return fmt::format(
        R"({{"cudaDeviceId":0,"deviceVer":{},"driverVer":13000,"maxGridSize":[2147483647,65535,65535],)"
        R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":{},"smClockRateKHz":1410000,)"
        R"("memClockRateKHz":1593000,"l2CacheSize":41943040,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
        R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
        R"("pciDeviceId":0,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,)"
        R"("supportCoopLaunch":1,"deviceName":"{}","totalGlobalMem":85000000000}})",
        d.capability, d.multiprocessors, d.shared_memory, d.name);
}

/// Empty where this cuDNN wants another description, and why.
inline std::optional<DnnDescriptor> describe(const Device& device, std::string& why_not) {
    DnnDescriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    const std::string json = json_of(device);
    d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()),
          json.data());
    if (!d.try_finalize(why_not)) return std::nullopt;
    return d;
}

}  // namespace lockstep::gpu::testing
