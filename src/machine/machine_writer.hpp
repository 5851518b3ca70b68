// Writes a machine of one node as the text of a machine file.
#pragma once

#include <string>

#include "machine/machine.hpp"

namespace lockstep::machine {

/// YAML that read_machine reads back as this machine but for its name: vertices, links and all constants of the
/// calibration with their sources; numbers with 6 significant digits. A device of a device file is named, any other
/// written in place. Throws LogicError for a cluster.
std::string machine_text(const Machine& machine);

}  // namespace lockstep::machine
