// What connects a GPU to the rest of its host, as the driver and the system tell it. Nothing here needs CUDA's headers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::gpu {

struct PcieLink {
    int generation = 0, lanes = 0;            ///< now; an idle GPU may have lowered its generation
    int most_generation = 0, most_lanes = 0;  ///< that GPU and slot allow
};

/// NVLinks from one GPU to one peer.
struct NvLinkPeer {
    std::string pci_bus_id;  ///< of a GPU, as GpuFacts has it; empty: the links go to switches
    int links = 0;
};

struct GpuLinks {
    std::optional<PcieLink> pcie;
    std::vector<NvLinkPeer> nv_links;
    std::vector<std::string> bridges;  ///< PCIe bridges from the GPU up to its root port; empty: not told
    std::string untold;                ///< why NVML tells nothing of the GPU; empty when it does
};

}  // namespace lockstep::gpu
