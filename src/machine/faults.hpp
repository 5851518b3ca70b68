// Links and NICs of single nodes that are slow or missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "machine/machine.hpp"

namespace lockstep::machine {

/// As written; what it names is looked up when it is applied.
struct Fault {
    config::Location where;
    int node = 0;
    std::vector<std::string> link;  ///< names of its two ends; empty: the fault is of a NIC
    int nic = -1;
    std::optional<double> share;    ///< what is left of the normal rate, in (0, 1)
    std::optional<Bandwidth> rate;  ///< what is left; neither share nor rate: missing
};

/// Reads the optional key `faults`:
///
///     faults:
///       - {node: 3, link: [gpu0, gpu1], rate: 0.5}          # a share of the normal rate, or a rate: 10 GB/s
///       - {link: [gpu2, nvswitch0], missing: true}          # node 0; every link that joins the two
///       - {node: 2, nic: 4, rate: 0.1}
///
/// Refused: both or neither of link and nic, of rate and missing; a share outside of 0 to 1; a rate of 0 or below.
std::vector<Fault> read_faults(config::Object& owner);

/// Changes the nodes that have faults; each such node becomes a kind of its own (equal ones share it). Reports, at the
/// place of the fault: a node, vertex, link or NIC that isn't there, a rate that isn't below the normal one, a NIC of a
/// machine without network, GPUs that can't reach each other any more, a node of several without any NIC.
void apply_faults(Machine& machine, const std::vector<Fault>& faults, config::Diagnostics& diagnostics);

}  // namespace lockstep::machine
