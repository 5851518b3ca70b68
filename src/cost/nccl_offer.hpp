// Which of NCCL's algorithms and protocols there are for a communicator.
#pragma once

#include <vector>

#include "cost/nccl_constants.hpp"
#include "machine/machine.hpp"

namespace lockstep::cost {

struct NcclOffer {
    /// false on CPUs and for devices whose compute capability isn't known: ring and simple alone, and trees between
    /// nodes.
    bool has_protocols = false;
    bool has_ll128 = false;
    bool has_nvls = false;
    bool is_on_nvlink = false;  ///< its ring inside each node
    GpuGeneration generation = GpuGeneration::volta;
    machine::ForcedCollectives forced;
    bool operator==(const NcclOffer&) const = default;
};

/// Of the nodes in `nodes` what all offer. ll128 as NCCL 2.30.7 enables it: compute capability 7.0 on and equal
/// (or 9.0 on) on all nodes, NVLink inside, and between nodes NICs at most PCIe switches away from a GPU. nvls:
/// switches that add up in every node, and at least 2 ranks there.
NcclOffer find_offer(const machine::Machine& machine, const std::vector<int>& nodes, int local_ranks,
                     bool is_on_nvlink);

}  // namespace lockstep::cost
