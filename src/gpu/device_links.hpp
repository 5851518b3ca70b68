// Asks the driver and the system for what connects a GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gpu/links.hpp"

namespace lockstep::gpu {

/// What NVML and the system know of the GPU at "0000:3b:00.0".
GpuLinks links_of(const std::string& pci_bus_id);

/// The PCIe bridges above a device, nearest first; none where the system doesn't tell. `devices` has one folder per
/// device, a link into the tree of buses.
std::vector<std::string> pci_bridges(const std::string& pci_bus_id,
                                     const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace lockstep::gpu
