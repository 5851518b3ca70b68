// A host with GPUs as a machine, made of what its driver and its system tell.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.hpp"

namespace lockstep::machine {

/// Where a GPU is and what its links are.
struct GpuPlace {
    struct Peer {
        std::string pci_bus_id;
        int links = 0;
    };
    std::string pci_bus_id;
    int numa_node = -1;                ///< -1: not told
    std::vector<std::string> bridges;  ///< PCIe bridges up to the root port, nearest first; empty: not told
    int pcie_generation = 0;           ///< that GPU and slot allow; 0: not told
    int pcie_lanes = 0;
    int switch_links = 0;     ///< NVLinks to switches
    std::vector<Peer> peers;  ///< NVLinks to other GPUs
};

/// One direction of a PCIe link after encoding (PCI-SIG, Base Specification: 8b/10b up to generation 2, 128b/130b up to
/// 5, flits from 6 on); 0 for a generation that isn't known.
Bandwidth pcie_bandwidth(int generation, int lanes);

/// `gpus` of type `device`, by ordinal, as one node. GPUs below one PCIe bridge share a switch; each CPU vertex is a
/// NUMA node that has GPUs; all NVSwitches are one vertex, since the driver doesn't tell them apart. What the device
/// lacks (NVLinks, PCIe) is completed; each thing that is assumed and not told is one of the machine's notes. The
/// caller sets name, title, calibration and sources.
Machine make_gpu_node(Device device, const std::vector<GpuPlace>& gpus);

}  // namespace lockstep::machine
