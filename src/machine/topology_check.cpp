#include "machine/topology_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "machine/route.hpp"

namespace lockstep::machine {

namespace {

bool is_on_nvlink(VertexKind k) { return k == VertexKind::gpu || k == VertexKind::nvswitch; }
bool is_on_pcie(VertexKind k) { return k != VertexKind::nvswitch; }

}  // namespace

bool has_route(const Topology& topology, int a, int b) {
    try {
        find_route(topology, topology.gpu(a), topology.gpu(b));
        return true;
    } catch (const RuntimeError&) { return false; }
}

bool can_join(LinkKind kind, VertexKind a, VertexKind b) {
    const auto one_of_each = [&](VertexKind x, VertexKind y) { return (a == x && b == y) || (a == y && b == x); };
    switch (kind) {
        case LinkKind::nvlink: return is_on_nvlink(a) && is_on_nvlink(b);
        case LinkKind::pcie: return is_on_pcie(a) && is_on_pcie(b) && !(a == VertexKind::cpu && b == VertexKind::cpu);
        case LinkKind::socket: return a == VertexKind::cpu && b == VertexKind::cpu;
        case LinkKind::memory: return one_of_each(VertexKind::gpu, VertexKind::cpu);
    }
    return false;
}

std::vector<std::string> find_faults(const Topology& topology, const Device& device) {
    std::vector<std::string> faults;
    for (std::size_t i = 0; i < topology.vertices.size(); ++i) {
        const Vertex& vertex = topology.vertices[i];
        const VertexId id{static_cast<std::int32_t>(i)};
        if (topology.links_of(id).empty() && topology.vertices.size() > 1)
            faults.push_back(fmt::format("{} has no link", vertex.name));
        const int nvlinks = nvlinks_of(topology, id);
        if (vertex.kind == VertexKind::gpu && nvlinks > device.nvlink.links)
            faults.push_back(fmt::format("{} has {} NVLinks, but {} has {}", vertex.name, nvlinks, device.name,
                                         device.nvlink.links));
    }
    for (int b = 1; b < topology.gpus(); ++b)
        for (int a = 0; a < b; ++a)
            if (!has_route(topology, a, b)) {
                faults.push_back(
                    fmt::format("gpu{} can't reach gpu{} (no NVLink, and no path over PCIe and sockets); "
                                "link it to a CPU or a switch that leads to one",
                                a, b));
                break;
            }
    return faults;
}

}  // namespace lockstep::machine
