#include "machine/gpu_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace lockstep::machine {

namespace {

/// Between the CPUs of a host, which no driver tells; the rate NCCL reckons with for most of them.
constexpr Bandwidth assumed_socket_rate = 16.0_GBps;
constexpr int assumed_pcie_generation = 3, assumed_pcie_lanes = 16;

/// One direction of an NVLink by compute capability, from NVIDIA's architecture white papers: Pascal 20 GB/s; Volta,
/// Ampere and Hopper 25; GA102 14.06; Blackwell 50.
NvLink nvlink_of(const std::string& compute_capability) {
    const int major = std::atoi(compute_capability.c_str());
    if (major >= 10) return {5, 0, 50.0_GBps};
    if (major == 9) return {4, 0, 25.0_GBps};
    if (compute_capability == "8.6") return {3, 0, 14.0625_GBps};
    if (major == 8) return {3, 0, 25.0_GBps};
    if (major == 7) return {2, 0, 25.0_GBps};
    return {1, 0, 20.0_GBps};
}

class GpuNode {
public:
    GpuNode(Machine& machine, const std::vector<GpuPlace>& gpus)
        : machine_(machine), node_(machine.node), gpus_(gpus) {}

    void make() {
        complete_nvlink();
        complete_pcie();
        for (std::size_t i = 0; i < gpus_.size(); ++i) {
            add(VertexKind::gpu, static_cast<int>(i));
            node_.vertices.back().numa_node = gpus_[i].numa_node;
        }
        link_by_nvlink();
        link_by_pcie();
        link_sockets();
    }

private:
    VertexId add(VertexKind kind, int index) {
        node_.vertices.push_back({kind, fmt::format("{}{}", to_string(kind), index), index, -1});
        return VertexId{static_cast<std::int32_t>(node_.vertices.size() - 1)};
    }
    void link(VertexId a, VertexId b, LinkKind kind, int count, Bandwidth of_one) {
        node_.links.push_back({a, b, kind, count, of_one * count, {}});
    }
    static VertexId id(std::size_t gpu) { return VertexId{static_cast<std::int32_t>(gpu)}; }
    void assume(std::string what) { machine_.notes.push_back(std::move(what)); }

    void complete_nvlink() {
        int most = 0;
        for (const GpuPlace& gpu : gpus_) {
            int links = gpu.switch_links;
            for (const GpuPlace::Peer& peer : gpu.peers) links += peer.links;
            most = std::max(most, links);
        }
        NvLink& nvlink = machine_.device.nvlink;
        if (most > 0 && nvlink.links == 0) {
            nvlink = nvlink_of(machine_.device.compute_capability);
            assume(fmt::format("an NVLink of compute capability {} is taken to carry {:g} GB/s in one direction",
                               machine_.device.compute_capability, nvlink.per_link.value / 1e9));
        }
        nvlink.links = std::max(nvlink.links, most);
    }
    void complete_pcie() {
        Pcie& pcie = machine_.device.pcie;
        for (const GpuPlace& gpu : gpus_)
            if (pcie.lanes == 0 && pcie_bandwidth(gpu.pcie_generation, gpu.pcie_lanes).value > 0)
                pcie = {gpu.pcie_generation, gpu.pcie_lanes, pcie_bandwidth(gpu.pcie_generation, gpu.pcie_lanes)};
        if (pcie.lanes > 0) return;
        pcie = {assumed_pcie_generation, assumed_pcie_lanes,
                pcie_bandwidth(assumed_pcie_generation, assumed_pcie_lanes)};
        assume("the PCIe links are not told: generation 3 x16 is assumed");
    }
    Bandwidth pcie_of(const GpuPlace& gpu) const {
        const Bandwidth told = pcie_bandwidth(gpu.pcie_generation, gpu.pcie_lanes);
        return told.value > 0 ? told : machine_.device.pcie.per_direction;
    }

    /// Both ends tell a link; the one that tells more is believed.
    int links_between(std::size_t a, std::size_t b) const {
        int links = 0;
        for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
            for (const GpuPlace::Peer& peer : gpus_[from].peers)
                if (peer.pci_bus_id == gpus_[to].pci_bus_id) links = std::max(links, peer.links);
        return links;
    }
    void link_by_nvlink() {
        const Bandwidth rate = machine_.device.nvlink.per_link;
        for (std::size_t a = 0; a < gpus_.size(); ++a)
            for (std::size_t b = a + 1; b < gpus_.size(); ++b)
                if (const int links = links_between(a, b); links > 0) link(id(a), id(b), LinkKind::nvlink, links, rate);
        if (std::ranges::all_of(gpus_, [](const GpuPlace& gpu) { return gpu.switch_links == 0; })) return;
        const VertexId all = add(VertexKind::nvswitch, 0);
        for (std::size_t i = 0; i < gpus_.size(); ++i)
            if (gpus_[i].switch_links > 0) link(id(i), all, LinkKind::nvlink, gpus_[i].switch_links, rate);
        assume("the NVSwitches are one vertex: the driver doesn't tell them apart");
    }

    /// The nearest bridge that another GPU is below, too; empty: none.
    std::string shared_bridge(std::size_t gpu) const {
        for (const std::string& bridge : gpus_[gpu].bridges)
            for (std::size_t other = 0; other < gpus_.size(); ++other)
                if (other != gpu && std::ranges::count(gpus_[other].bridges, bridge) > 0) return bridge;
        return "";
    }
    void link_by_pcie() {
        std::set<int> numa_nodes;
        std::map<std::string, std::vector<std::size_t>> below;  // GPUs by the bridge they share
        std::vector<std::string> bridges;
        for (std::size_t i = 0; i < gpus_.size(); ++i) {
            numa_nodes.insert(gpus_[i].numa_node);
            bridges.push_back(shared_bridge(i));
            if (!bridges.back().empty()) below[bridges.back()].push_back(i);
        }
        std::map<std::string, VertexId> switches;
        for (const std::string& bridge : bridges)
            if (!bridge.empty() && !switches.contains(bridge))
                switches.emplace(bridge, add(VertexKind::pcie_switch, static_cast<int>(switches.size())));
        for (const int numa_node : numa_nodes) {
            cpus_.emplace(numa_node, add(VertexKind::cpu, static_cast<int>(cpus_.size())));
            node_.vertices.back().numa_node = std::max(numa_node, 0);
        }
        if (numa_nodes.contains(-1))
            assume(numa_nodes.size() == 1 ? "the NUMA nodes of the GPUs are not told: they are put below one CPU"
                                          : "GPUs whose NUMA node is not told are put below a CPU of their own");
        for (std::size_t i = 0; i < gpus_.size(); ++i)
            link(id(i), bridges[i].empty() ? cpus_.at(gpus_[i].numa_node) : switches.at(bridges[i]), LinkKind::pcie, 1,
                 pcie_of(gpus_[i]));
        for (const auto& [bridge, gpus] : below)
            link(switches.at(bridge), cpus_.at(gpus_[gpus.front()].numa_node), LinkKind::pcie, 1,
                 pcie_of(gpus_[gpus.front()]));
    }
    void link_sockets() {
        for (auto a = cpus_.begin(); a != cpus_.end(); ++a)
            for (auto b = std::next(a); b != cpus_.end(); ++b)
                link(a->second, b->second, LinkKind::socket, 1, assumed_socket_rate);
        if (cpus_.size() > 1)
            assume(fmt::format("the rate between CPUs is not told: {:g} GB/s is assumed",
                               assumed_socket_rate.value / 1e9));
    }

    Machine& machine_;
    Topology& node_;
    const std::vector<GpuPlace>& gpus_;
    std::map<int, VertexId> cpus_;  // by NUMA node
};

}  // namespace

Bandwidth pcie_bandwidth(int generation, int lanes) {
    // Transfers of a bit per lane and second, and the share of them that is payload.
    struct Generation {
        double transfers, payload;
    };
    constexpr Generation generations[] = {{2.5e9, 0.8},        {5e9, 0.8},          {8e9, 128.0 / 130},
                                          {16e9, 128.0 / 130}, {32e9, 128.0 / 130}, {64e9, 236.0 / 256}};
    if (generation < 1 || generation > 6 || lanes < 1) return {};
    const auto [transfers, payload] = generations[generation - 1];
    return Bandwidth{transfers * payload / 8 * lanes};
}

Machine make_gpu_node(Device device, const std::vector<GpuPlace>& gpus) {
    Machine machine;
    machine.device = std::move(device);
    GpuNode(machine, gpus).make();
    return machine;
}

}  // namespace lockstep::machine
