// Sends known patterns over a communicator and compares.
#pragma once

#include <string>

#include "world/world.hpp"

namespace lockstep::cpu {

/// All-reduce (sum), all-gather, reduce-scatter and a ring of messages, of a few and of many elements. Throws
/// RuntimeError naming the communicator, this rank and the first wrong element. Collective.
void check_wire(world::World& world, const std::string& name);

}  // namespace lockstep::cpu
