// What communication ops must do among GPUs, whether ranks are threads or processes.
#pragma once

#include <string>
#include <vector>

#include "world/world.hpp"

namespace lockstep::gpu::testing {

struct NcclCase {
    std::string name;
    /// Collective; each rank has a device of its own. Throws RuntimeError naming the first wrong element.
    void (*run)(world::World& world);
};
std::vector<NcclCase> nccl_cases();

}  // namespace lockstep::gpu::testing
