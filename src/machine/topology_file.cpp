#include "machine/topology_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "machine/field.hpp"
#include "machine/link_reader.hpp"
#include "machine/topology_check.hpp"

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

constexpr std::array vertex_kinds{VertexKind::gpu, VertexKind::nvswitch, VertexKind::pcie_switch, VertexKind::cpu,
                                  VertexKind::nic};

std::vector<Vertex> read_vertices(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "vertices", diagnostics);
    std::vector<Vertex> vertices;
    for (const VertexKind kind : vertex_kinds) {
        const auto min = kind == VertexKind::gpu ? 1 : 0;
        const auto count = object.integer_or(to_string(kind), min, min, most_of_a_kind);
        for (int i = 0; i < count; ++i)
            vertices.push_back({kind, fmt::format("{}{}", to_string(kind), i), i, kind == VertexKind::cpu ? i : -1});
    }
    object.finish();
    return vertices;
}

void read_numa(Object& machine, Topology& topology) {
    if (!machine.has("numa")) return;
    const auto numa = machine.integers("numa");
    std::size_t next = 0;
    for (Vertex& v : topology.vertices)
        if (v.kind == VertexKind::cpu && next < numa.size()) v.numa_node = static_cast<int>(numa[next++]);
    const auto cpus = std::ranges::count(topology.vertices, VertexKind::cpu, &Vertex::kind);
    if (numa.size() != static_cast<std::size_t>(cpus))
        machine.error("numa", fmt::format("wants one number for each of the {} CPUs, got {}", cpus, numa.size()));
}

LinkRates read_rates(Object& machine, const Device& device) {
    LinkRates rates{device.nvlink.per_link, device.pcie.per_direction, {}, {}};
    const auto node = machine.node("rates");
    if (!node) return rates;
    Object object(*node, "rates", machine.diagnostics());
    const auto read = [&](std::string_view key, Bandwidth& rate) {
        if (object.has(key)) rate = positive(object, key, &Object::bandwidth);
    };
    read("nvlink", rates.nvlink);
    read("pcie", rates.pcie);
    read("socket", rates.socket);
    read("memory", rates.memory);
    object.finish();
    return rates;
}

/// Each vertex below a CPU gets the NUMA node of the nearest one.
void spread_numa(Topology& topology) {
    for (std::size_t pass = 0; pass < topology.vertices.size(); ++pass) {
        bool is_changed = false;
        for (const Link& link : topology.links) {
            if (link.kind != LinkKind::pcie && link.kind != LinkKind::memory) continue;
            Vertex &a = topology.vertices[link.a.index()], &b = topology.vertices[link.b.index()];
            if ((a.numa_node < 0) == (b.numa_node < 0)) continue;
            (a.numa_node < 0 ? a : b).numa_node = std::max(a.numa_node, b.numa_node);
            is_changed = true;
        }
        if (!is_changed) return;
    }
}

}  // namespace

Topology read_topology(Object& machine, const Device& device) {
    Diagnostics& diagnostics = machine.diagnostics();
    const std::size_t before = diagnostics.count();
    Topology topology;
    if (const auto vertices = machine.node("vertices"))
        topology.vertices = read_vertices(*vertices, diagnostics);
    else
        machine.error("vertices", "key 'vertices' is missing, such as vertices: {gpu: 8, cpu: 2}");
    topology.host_bridges =
        machine.choice_or("host_bridges", {"one_per_cpu", "one_per_port"}, "one_per_port") == "one_per_cpu"
            ? HostBridges::one_per_cpu
            : HostBridges::one_per_port;
    topology.peer_access = machine.choice_or("peer_access", {"direct", "through_host"}, "direct") == "direct"
                               ? PeerAccess::direct
                               : PeerAccess::through_host;
    read_numa(machine, topology);
    const LinkRates rates = read_rates(machine, device);
    LinkReader reader(topology, rates, diagnostics);
    if (const auto links = machine.node("links"); links && !links->is_null())
        for (const Node& item : machine.nodes("links")) reader.read(item);
    if (diagnostics.count() != before) return topology;
    spread_numa(topology);
    for (const std::string& fault : find_faults(topology, device)) machine.error("links", fault);
    return topology;
}

}  // namespace lockstep::machine
