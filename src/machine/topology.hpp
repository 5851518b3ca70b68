// What connects the devices of one node: vertices and explicit links.
#pragma once

#include <optional>
#include <string>
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
};
using LinkId = Id<Link>;

/// One node. Full duplex: each link carries per_direction both ways at once.
struct Topology {
    std::vector<Vertex> vertices;
    std::vector<Link> links;

    int gpus() const;
    int nics() const;
    VertexId gpu(int index) const;  ///< throws LogicError when absent
    std::vector<LinkId> links_of(VertexId v) const;
};

/// How far apart two devices are, as `nvidia-smi topo -m` says it, nearest first.
enum class Proximity { self, nvlink, pix, pxb, phb, node, sys };

}  // namespace lockstep::machine
