#include "cost/nccl_offer.hpp"

#include <algorithm>

#include "machine/knobs.hpp"
#include "machine/route.hpp"

namespace lockstep::cost {

namespace {

/// Every NIC has a GPU that at most PCIe switches part from it.
bool are_nics_near(const machine::Topology& topology) {
    if (topology.nics() == 0) return false;
    for (int i = 0; i < topology.nics(); ++i) {
        const auto nic = machine::find_vertex(topology, machine::VertexKind::nic, i);
        bool is_near = false;
        for (int g = 0; g < topology.gpus() && !is_near; ++g)
            is_near = machine::find_route(topology, topology.gpu(g), *nic).proximity <= machine::Proximity::pxb;
        if (!is_near) return false;
    }
    return true;
}

}  // namespace

NcclOffer find_offer(const machine::Machine& machine, const std::vector<int>& nodes, int local_ranks,
                     bool is_on_nvlink) {
    NcclOffer offer;
    offer.is_on_nvlink = is_on_nvlink;
    std::vector<int> kinds;  // each asked once: its nodes are alike
    int least = 1000, most = 0;
    bool are_near = true, have_nvls = local_ranks > 1;
    for (const int node : nodes) {
        const int kind = machine.kind_of(node);
        if (std::ranges::find(kinds, kind) != kinds.end()) continue;
        kinds.push_back(kind);
        const machine::Device& device = machine.device_of(node);
        const int major = device.kind == machine::DeviceKind::gpu ? machine::capability_major(device) : 0;
        if (major <= least) offer.generation = generation_of(device);
        least = std::min(least, major);
        most = std::max(most, major);
        have_nvls = have_nvls && machine::has_in_switch_reduction(device, machine.topology_of(node));
        are_near = are_near && (nodes.size() == 1 || are_nics_near(machine.topology_of(node)));
    }
    offer.has_protocols = least > 0;
    if (!offer.has_protocols) return offer;
    offer.forced = machine.forced;
    const bool is_inside_fit = local_ranks == 1 || is_on_nvlink;
    offer.has_ll128 = least >= 7 && (least == most || least >= 9) && is_inside_fit && are_near;
    offer.has_nvls = have_nvls;
    return offer;
}

}  // namespace lockstep::cost
