// Which GPU a rank uses.
#pragma once

#include <vector>

#include "gpu/backend.hpp"

namespace lockstep::gpu {

/// The ordinal of this rank's GPU: the first of those that it sees which no lower rank of the host has. So ranks that
/// all see all GPUs take them in order, and a rank that sees its own alone takes that. Throws RuntimeError on all
/// ranks, the same on each and before NCCL could hang, for a rank that is left without a GPU of its own, and for MIG
/// instances of more than one rank, which NCCL doesn't connect. Collective.
int choose_device(world::World& world, const std::vector<GpuFacts>& visible);

}  // namespace lockstep::gpu
