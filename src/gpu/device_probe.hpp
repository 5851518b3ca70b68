// What the visible GPUs are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gpu/backend.hpp"

namespace lockstep::gpu {

/// The visible GPUs, without making a context on any of them. Throws RuntimeError when there is none: which driver is
/// needed and which is installed, or what hides them.
std::vector<GpuFacts> probe_devices();

/// "13.0" of 13000, as the CUDA runtime gives versions.
std::string cuda_version_text(int version);

/// NUMA node of a PCIe device; -1: not told. `devices` has one folder per device.
int pci_numa_node(const std::string& pci_bus_id, const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace lockstep::gpu
