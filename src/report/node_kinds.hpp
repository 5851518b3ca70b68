// Which nodes of a machine are of which kind, as ranges.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine/machine.hpp"

namespace lockstep::report {

/// First and last of each run of nodes of a kind.
std::vector<std::pair<int, int>> node_ranges(const machine::Machine& machine, int kind);

/// Nodes of a kind.
int kind_count(const machine::Machine& machine, int kind);

/// "Node 3", "Nodes 0-1, 4".
std::string nodes_text(const machine::Machine& machine, int kind);

}  // namespace lockstep::report
