#include "machine/route.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "machine/path_search.hpp"

namespace lockstep::machine {

namespace {

bool is_nvlink(const Link& l) { return l.kind == LinkKind::nvlink; }
bool is_no_nvlink(const Link& l) { return l.kind != LinkKind::nvlink; }

void widen(Route& route, const Graph& graph, LinkId id, Bandwidth& sum) {
    if (std::ranges::find(route.links, id) != route.links.end()) return;
    route.links.push_back(id);
    sum += graph.link(id).per_direction;
}

/// All bundles that join the two GPUs directly.
std::optional<Route> direct_nvlink(const Graph& graph, VertexId from, VertexId to) {
    Route route{{}, {}, Proximity::nvlink, 0};
    for (const LinkId id : graph.links(from)) {
        const Link& link = graph.link(id);
        if (!is_nvlink(link) || other_end(link, from) != to) continue;
        widen(route, graph, id, route.bandwidth);
        route.nvlinks += link.count;
    }
    return route.links.empty() ? std::nullopt : std::optional(route);
}

/// Traffic is striped over every link of `from` whose switch leads to `to`; links of a stage (source, between
/// switches, destination) carry it side by side, so the narrowest stage limits.
std::optional<Route> through_nvswitch(const Graph& graph, VertexId from, VertexId to) {
    const auto is_switch = [&](VertexId v) { return graph.kind(v) == VertexKind::nvswitch; };
    std::vector<LinkId> first, middle, last;
    int nvlinks = 0;
    for (const LinkId id : graph.links(from)) {
        const Link& link = graph.link(id);
        const VertexId entry = other_end(link, from);
        if (!is_nvlink(link) || !is_switch(entry)) continue;
        const auto path = graph.shortest(entry, is_nvlink, is_switch, [&](VertexId v) { return v == to; });
        if (!path) continue;
        first.push_back(id);
        middle.insert(middle.end(), path->begin(), path->end() - 1);
        last.push_back(path->back());
        nvlinks += link.count;
    }
    if (first.empty()) return std::nullopt;
    Route route{{}, Bandwidth{std::numeric_limits<double>::infinity()}, Proximity::nvlink, nvlinks};
    for (const auto* stage : {&first, &middle, &last}) {
        Bandwidth sum;
        for (const LinkId id : *stage) widen(route, graph, id, sum);
        if (!stage->empty()) route.bandwidth = std::min(route.bandwidth, sum);
    }
    return route;
}

/// NIC, PCIe switch, host bridge or socket: what is the farthest thing the path crosses.
Proximity proximity_of(const Topology& topology, const Graph& graph, VertexId from, const std::vector<LinkId>& path) {
    int switches = 0;
    bool crosses_cpu = false, crosses_socket = false;
    VertexId at = from;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const Link& link = graph.link(path[i]);
        crosses_socket |= link.kind == LinkKind::socket;
        at = other_end(link, at);
        if (i + 1 == path.size()) break;
        switches += graph.kind(at) == VertexKind::pcie_switch ? 1 : 0;
        crosses_cpu |= graph.kind(at) == VertexKind::cpu;
    }
    if (crosses_socket) return Proximity::sys;
    if (crosses_cpu) return topology.host_bridges == HostBridges::one_per_cpu ? Proximity::phb : Proximity::node;
    return switches > 1 ? Proximity::pxb : Proximity::pix;
}

/// The path between two GPUs that may only meet in host memory: up to the CPU of one, then down from the CPU of the
/// other.
Path by_host_memory(const Graph& graph, VertexId from, VertexId to) {
    const auto is_cpu = [&](VertexId v) { return graph.kind(v) == VertexKind::cpu; };
    const auto may_pass = [&](VertexId v) { return is_cpu(v) || graph.kind(v) == VertexKind::pcie_switch; };
    const auto up = graph.shortest(from, is_no_nvlink, may_pass, is_cpu);
    auto down = graph.shortest(to, is_no_nvlink, may_pass, is_cpu);
    if (!up || !down) return std::nullopt;
    const auto end_of = [&](VertexId v, const std::vector<LinkId>& path) {
        for (const LinkId id : path) v = other_end(graph.link(id), v);
        return v;
    };
    const VertexId goal = end_of(to, *down);
    const auto across =
        graph.shortest(end_of(from, *up), is_no_nvlink, may_pass, [&](VertexId v) { return v == goal; });
    if (!across) return std::nullopt;
    std::vector<LinkId> path = *up;
    path.insert(path.end(), across->begin(), across->end());
    path.insert(path.end(), down->rbegin(), down->rend());
    return path;
}

}  // namespace

Route find_route(const Topology& topology, VertexId from, VertexId to) {
    if (from == to) return {{}, Bandwidth{std::numeric_limits<double>::infinity()}, Proximity::self, 0};
    const Graph graph(topology);
    const bool are_gpus = graph.kind(from) == VertexKind::gpu && graph.kind(to) == VertexKind::gpu;
    if (are_gpus) {
        if (const auto route = direct_nvlink(graph, from, to)) return *route;
        if (const auto route = through_nvswitch(graph, from, to)) return *route;
    }
    const auto may_pass = [&](VertexId v) {
        return graph.kind(v) == VertexKind::pcie_switch || graph.kind(v) == VertexKind::cpu;
    };
    const auto physical = graph.shortest(from, is_no_nvlink, may_pass, [&](VertexId v) { return v == to; });
    const bool meets_in_host = are_gpus && topology.peer_access == PeerAccess::through_host;
    const auto used = physical && meets_in_host ? by_host_memory(graph, from, to) : physical;
    if (!used)
        throw RuntimeError(
            fmt::format("no route from {} to {} (no NVLink, and no path over PCIe and sockets); add the "
                        "missing links to the machine file",
                        topology.vertices[from.index()].name, topology.vertices[to.index()].name));
    Route route{*used, Bandwidth{std::numeric_limits<double>::infinity()},
                proximity_of(topology, graph, from, *physical), 0};
    for (const LinkId id : *used) route.bandwidth = std::min(route.bandwidth, graph.link(id).per_direction);
    return route;
}

}  // namespace lockstep::machine
