#include "machine/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::machine {

namespace {

int count(const Topology& topology, VertexKind kind) {
    return static_cast<int>(
        std::ranges::count_if(topology.vertices, [kind](const Vertex& v) { return v.kind == kind; }));
}

}  // namespace

std::string_view to_string(VertexKind kind) {
    switch (kind) {
        case VertexKind::gpu: return "gpu";
        case VertexKind::nvswitch: return "nvswitch";
        case VertexKind::pcie_switch: return "pcie_switch";
        case VertexKind::cpu: return "cpu";
        case VertexKind::nic: return "nic";
    }
    throw LogicError("unknown kind of vertex");
}

std::string_view to_string(LinkKind kind) {
    switch (kind) {
        case LinkKind::nvlink: return "nvlink";
        case LinkKind::pcie: return "pcie";
        case LinkKind::socket: return "socket";
        case LinkKind::memory: return "memory";
    }
    throw LogicError("unknown kind of link");
}

int Topology::gpus() const { return count(*this, VertexKind::gpu); }
int Topology::nics() const { return count(*this, VertexKind::nic); }

VertexId Topology::gpu(int index) const {
    const auto id = find_vertex(*this, VertexKind::gpu, index);
    if (!id) throw LogicError(fmt::format("no gpu{} in a topology of {} GPUs", index, gpus()));
    return *id;
}

std::vector<LinkId> Topology::links_of(VertexId v) const {
    std::vector<LinkId> result;
    for (std::size_t i = 0; i < links.size(); ++i)
        if (links[i].a == v || links[i].b == v) result.push_back({static_cast<std::int32_t>(i)});
    return result;
}

std::optional<VertexId> find_vertex(const Topology& topology, VertexKind kind, int index) {
    for (std::size_t i = 0; i < topology.vertices.size(); ++i)
        if (topology.vertices[i].kind == kind && topology.vertices[i].index == index)
            return VertexId{static_cast<std::int32_t>(i)};
    return std::nullopt;
}

VertexId other_end(const Link& link, VertexId v) { return link.a == v ? link.b : link.a; }

int nvlinks_of(const Topology& topology, VertexId gpu) {
    int total = 0;
    for (const LinkId id : topology.links_of(gpu)) {
        const Link& link = topology.links[id.index()];
        if (link.kind == LinkKind::nvlink) total += link.count;
    }
    return total;
}

}  // namespace lockstep::machine
