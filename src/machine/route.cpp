#include "machine/route.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.hpp"

namespace lockstep::machine {

namespace {

using Path = std::optional<std::vector<LinkId>>;

/// The links of each vertex, found once for one search.
class Graph {
public:
    explicit Graph(const Topology& topology) : topology_(topology), links_(topology.vertices.size()) {
        for (std::size_t i = 0; i < topology.links.size(); ++i) {
            links_[topology.links[i].a.index()].push_back({static_cast<std::int32_t>(i)});
            links_[topology.links[i].b.index()].push_back({static_cast<std::int32_t>(i)});
        }
    }

    const std::vector<LinkId>& links(VertexId v) const { return links_[v.index()]; }
    const Link& link(LinkId id) const { return topology_.links[id.index()]; }
    VertexKind kind(VertexId v) const { return topology_.vertices[v.index()].kind; }
    std::size_t size() const { return links_.size(); }

    /// The path of fewest links whose links satisfy `may_use` and whose inner vertices satisfy `may_pass`; among equal
    /// ones the widest, then the one found first. It ends at the first vertex that satisfies `is_goal`.
    template <class MayUse, class MayPass, class IsGoal>
    Path shortest(VertexId from, MayUse may_use, MayPass may_pass, IsGoal is_goal) const {
        struct Reached {
            int distance = -1;
            Bandwidth width{std::numeric_limits<double>::infinity()};
            LinkId by;
        };
        std::vector<Reached> reached(size());
        std::vector<VertexId> queue{from};
        reached[from.index()].distance = 0;
        for (std::size_t next = 0; next < queue.size(); ++next) {
            const VertexId v = queue[next];
            if (is_goal(v)) return trace(from, v, [&](VertexId at) { return reached[at.index()].by; });
            if (v != from && !may_pass(v)) continue;
            for (const LinkId id : links(v)) {
                if (!may_use(link(id))) continue;
                const VertexId w = other_end(link(id), v);
                Reached& there = reached[w.index()];
                const Bandwidth width = std::min(reached[v.index()].width, link(id).per_direction);
                const int distance = reached[v.index()].distance + 1;
                if (there.distance < 0) queue.push_back(w);
                if (there.distance < 0 || (there.distance == distance && width > there.width))
                    there = {distance, width, id};
            }
        }
        return std::nullopt;
    }

private:
    template <class By>
    std::vector<LinkId> trace(VertexId from, VertexId to, By by) const {
        std::vector<LinkId> path;
        for (VertexId v = to; v != from; v = other_end(link(path.back()), v)) path.push_back(by(v));
        std::ranges::reverse(path);
        return path;
    }

    const Topology& topology_;
    std::vector<std::vector<LinkId>> links_;
};

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
