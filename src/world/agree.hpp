// Ranks agree on an error before any of them exits, so that no launcher kills the others in mid-write.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "world/world.hpp"

namespace lockstep::world {

/// Runs `body` and then tells every rank how each fared. When any threw, all throw: the failing ranks' own error, the
/// others an error of the same exit code that names the lowest failing rank and its message. Collective; `body` must
/// not leave a collective half done.
void agree(World& world, const std::function<void()>& body);

/// Number of ranks for which `flag` is true. Collective.
int count_true(World& world, bool flag);

/// Strings of all ranks, on every rank. Collective.
std::vector<std::string> all_gather_strings(World& world, const std::string& mine);

/// `text` of the root on every rank. Collective.
std::string broadcast_string(World& world, const std::string& text, int root);

}  // namespace lockstep::world
