// Whether a rank's cores are near its GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gpu/backend.hpp"

namespace lockstep::gpu {

/// NUMA nodes of the cores that this thread may run on, ascending; empty where the system doesn't tell.
std::vector<int> allowed_numa_nodes(const std::filesystem::path& nodes = "/sys/devices/system/node");

/// What is wrong with a rank whose cores are on `nodes` only and whose GPU is on another; empty when nothing is, or it
/// is not known.
std::string numa_warning(const GpuFacts& gpu, const std::vector<int>& nodes);

}  // namespace lockstep::gpu
