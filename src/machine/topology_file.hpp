// The part of a machine file that says what is in a node and what connects it.
#pragma once

#include "config/document.hpp"
#include "machine/device.hpp"
#include "machine/topology.hpp"

namespace lockstep::machine {

/// Reads these keys of a machine file; every error goes to its diagnostics, and the result is then not to be used.
///
///     vertices: {gpu: 8, nvswitch: 6, pcie_switch: 4, cpu: 2, nic: 8}
///     numa: [0, 1]                                 # of each CPU; its index by default
///     rates: {pcie: 15.75 GB/s, socket: 16 GB/s}   # of one link, one direction; nvlink and pcie: the device's by
///     default host_bridges: one_per_port                   # or one_per_cpu peer_access: direct # or through_host
///     links:                                       # [ends, ends, kind, count = 1, rate of one link]
///       - [gpu0, gpu3, nvlink, 2]
///       - [gpu0-7, nvswitch0-5, nvlink, 2]         # every GPU with every switch
///
/// Refused: unknown vertices, impossible ends of a kind of link, the same link twice, more NVLinks at a GPU than the
/// device has, a rate of 0, a GPU that another one can't reach, anything not linked at all.
Topology read_topology(config::Object& machine, const Device& device);

}  // namespace lockstep::machine
