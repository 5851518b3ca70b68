// The links of one node, in one direction each, and what traffic between its devices loads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "machine/machine.hpp"
#include "step/durations.hpp"

namespace lockstep::cost {

using Loads = std::vector<step::LinkLoad>;  ///< each link once, ascending
/// Adds `share` on `link` to loads that may name a link several times; `merged` makes each one.
Loads merged(Loads loads);

/// Links are numbered from 0. The NVLinks between a GPU and switches are one link each way (traffic is striped over
/// them); other bundles are a link each way. Then come the NICs, out and in.
class NodeLinks {
public:
    /// `nics`: rate of each NIC, one direction, 0: missing; may be empty.
    NodeLinks(const machine::Topology& topology, std::vector<Bandwidth> nics);

    /// Raw capacities, before any efficiency.
    const std::vector<Bandwidth>& capacities() const { return capacities_; }
    /// The first of the NICs' links: those before it are inside the node.
    std::int32_t first_nic() const { return first_nic_; }
    int nics() const { return static_cast<int>(nics_.size()); }
    std::int32_t nic_out(int nic) const { return first_nic_ + 2 * nic; }
    std::int32_t nic_in(int nic) const { return first_nic_ + 2 * nic + 1; }

    /// From one GPU to another along machine::find_route: share 1 for each byte, split over bundles side by side.
    const Loads& hop(int from, int to) const;
    Bandwidth hop_rate(int from, int to) const;  ///< of the route
    /// NICs of a GPU: the nearest of the topology where it has as many as there are, shared out evenly among GPUs that
    /// are equally near (as NCCL picks them); else each GPU its even part in order.
    const std::vector<int>& nics_of(int gpu) const { return nics_of_gpu_[static_cast<std::size_t>(gpu)]; }
    /// Links inside the node between a GPU and its NIC, outwards and inwards: the GPU's and the NIC's own PCIe links
    /// and those to CPUs and between them. Links between PCIe switches don't count: often they are one chip.
    const Loads& to_nic(int gpu, int nic) const;
    const Loads& from_nic(int gpu, int nic) const;

    const machine::Topology& topology() const { return topology_; }
    bool is_switched(int gpu) const;  ///< whether NVLinks join the GPU to a switch

private:
    std::int32_t directed(machine::LinkId link, machine::VertexId left) const;
    Loads nvlink_hop(const machine::Route& route, machine::VertexId from, machine::VertexId to) const;
    Loads path(const machine::Route& route, machine::VertexId from) const;
    void find_nics();

    machine::Topology topology_;
    std::vector<Bandwidth> nics_;
    std::vector<Bandwidth> capacities_;
    std::vector<std::int32_t> number_;  ///< by 2 x topology link + (1 when left at b)
    std::int32_t first_nic_ = 0;
    std::vector<std::vector<int>> nics_of_gpu_;
    bool has_nic_vertices_ = false;
    mutable std::map<std::pair<int, int>, Loads> hops_, to_nic_, from_nic_;
    mutable std::map<std::pair<int, int>, Bandwidth> hop_rates_;
};

}  // namespace lockstep::cost
