// The GPUs that the double pretends to have, and those of them that this process sees.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::gpu_double {

struct Device {
    int number = 0;  ///< of the machine
    cudaUUID_t uuid{};
    std::string uuid_text;  ///< "GPU-..."; "MIG-..." of an instance
    int pci_domain = 0, pci_bus = 0;
};
/// "D0B1:01:00.0"
std::string pci_bus_id(const Device& device);

/// The machine's: equal in every process.
std::shared_ptr<const std::vector<Device>> all_devices();
/// Those that CUDA_VISIBLE_DEVICES leaves, in its order. An entry that names no device, or one a second time, ends the
/// list.
std::shared_ptr<const std::vector<Device>> visible_devices();

}  // namespace lockstep::gpu_double
