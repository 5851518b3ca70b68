// What connects the devices of one node: vertices and explicit links.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace lockstep::machine {

enum class VertexKind { gpu, nvswitch, pcie_switch, cpu, nic };
enum class LinkKind {
    nvlink,
    pcie,
    socket,
    memory
};  ///< socket: between CPUs; memory: ranks of a CPU host through its memory

struct Vertex {
    VertexKind kind = VertexKind::gpu;
    std::string name;    ///< "gpu0", "nvswitch3", "cpu1", "nic0"
    int index = 0;       ///< among vertices of this kind; a GPU's index is its local rank
    int numa_node = -1;  ///< of a CPU; of what hangs below it otherwise
};
using VertexId = Id<Vertex>;

struct Link {
    VertexId a;
    VertexId b;
    LinkKind kind = LinkKind::pcie;
    int count = 1;            ///< physical links bundled
    Bandwidth per_direction;  ///< of the whole bundle
    Seconds latency;          ///< 0: not known
    double left = 1;          ///< what a fault leaves of the normal rate; per_direction is what is left
};
using LinkId = Id<Link>;

/// Whether the PCIe ports of one CPU belong to one host bridge (Xeon E5) or to one each (Xeon Scalable, EPYC): it tells
/// PHB from NODE between two devices of a CPU, and changes no rate.
enum class HostBridges { one_per_cpu, one_per_port };

/// How GPUs reach each other over PCIe: from one to the other, or by a buffer in host memory where the driver refuses
/// peer access (GeForce cards).
enum class PeerAccess { direct, through_host };

/// One node. Full duplex: each link carries per_direction both ways at once.
struct Topology {
    std::vector<Vertex> vertices;
    std::vector<Link> links;
    HostBridges host_bridges = HostBridges::one_per_port;
    PeerAccess peer_access = PeerAccess::direct;

    int gpus() const;
    int nics() const;
    VertexId gpu(int index) const;  ///< throws LogicError when absent
    std::vector<LinkId> links_of(VertexId v) const;
};

std::string_view to_string(VertexKind kind);  ///< "gpu", "nvswitch", "pcie_switch", "cpu", "nic"
std::string_view to_string(LinkKind kind);    ///< "nvlink", "pcie", "socket", "memory"
std::optional<VertexId> find_vertex(const Topology& topology, VertexKind kind, int index);
/// The end of `link` that is not `v`.
VertexId other_end(const Link& link, VertexId v);
/// Physical NVLinks at a GPU, to other GPUs and to switches together.
int nvlinks_of(const Topology& topology, VertexId gpu);

/// How far apart two devices are, as `nvidia-smi topo -m` says it, nearest first.
enum class Proximity { self, nvlink, pix, pxb, phb, node, sys };

}  // namespace lockstep::machine
