#include "machine/topology_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "config/quantity.hpp"
#include "machine/field.hpp"
#include "machine/topology_check.hpp"

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

constexpr int most_of_a_kind = 1024;
constexpr std::array vertex_kinds{VertexKind::gpu, VertexKind::nvswitch, VertexKind::pcie_switch, VertexKind::cpu,
                                  VertexKind::nic};
constexpr std::array link_kinds{LinkKind::nvlink, LinkKind::pcie, LinkKind::socket, LinkKind::memory};

struct Rates {
    Bandwidth nvlink, pcie, socket, memory;

    Bandwidth of(LinkKind kind) const {
        switch (kind) {
            case LinkKind::nvlink: return nvlink;
            case LinkKind::pcie: return pcie;
            case LinkKind::socket: return socket;
            case LinkKind::memory: return memory;
        }
        return {};
    }
};

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

Rates read_rates(Object& machine, const Device& device) {
    Rates rates{device.nvlink.per_link, device.pcie.per_direction, {}, {}};
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

/// Reads one item of `links`.
class LinkReader {
public:
    LinkReader(Topology& topology, const Rates& rates, Diagnostics& diagnostics)
        : topology_(topology), rates_(rates), diagnostics_(diagnostics) {}

    void read(const Node& item) {
        const auto& parts = item.items();
        if (parts.size() < 3 || parts.size() > 5)
            return report(item, "a link wants [from, to, kind, count, rate], such as [gpu0, gpu3, nvlink, 2]");
        const auto from = read_ends(parts[0]);
        const auto to = read_ends(parts[1]);
        const auto kind = read_kind(parts[2]);
        const auto count = parts.size() > 3 ? read_count(parts[3]) : std::optional(1);
        if (!kind || !count) return;
        const auto rate = parts.size() > 4 ? read_rate(parts[4]) : default_rate(parts[2], *kind);
        if (!rate) return;
        for (const VertexId a : from)
            for (const VertexId b : to) add(item, {a, b, *kind, *count, *count * *rate, {}});
    }

private:
    void report(const Node& at, const std::string& message) { diagnostics_.error(at.where(), "links: " + message); }
    const Vertex& vertex(VertexId id) const { return topology_.vertices[id.index()]; }

    void add(const Node& item, Link link) {
        const Vertex &a = vertex(link.a), &b = vertex(link.b);
        if (link.a == link.b) return report(item, fmt::format("{} is linked with itself", a.name));
        if (!can_join(link.kind, a.kind, b.kind))
            return report(item, fmt::format("{} can't join {} and {}", to_string(link.kind), a.name, b.name));
        const bool is_repeated = std::ranges::any_of(topology_.links, [&](const Link& l) {
            return l.kind == link.kind && ((l.a == link.a && l.b == link.b) || (l.a == link.b && l.b == link.a));
        });
        if (is_repeated)
            return report(item, fmt::format("{} and {} are linked twice by {}; write one link with a count", a.name,
                                            b.name, to_string(link.kind)));
        topology_.links.push_back(link);
    }

    std::vector<VertexId> read_ends(const Node& node) {
        std::vector<VertexId> ends;
        for (const Node& part : node.is_sequence() ? node.items() : std::vector<Node>{node})
            for (const VertexId id : read_range(part)) ends.push_back(id);
        return ends;
    }

    /// "gpu3" or "gpu0-7".
    std::vector<VertexId> read_range(const Node& node) {
        const std::string& text = node.text();
        const std::size_t digits = std::min(text.find_first_of("0123456789"), text.size());
        const char* const end = text.data() + text.size();
        int first = 0;
        auto parsed = std::from_chars(text.data() + digits, end, first);
        bool is_good = parsed.ec == std::errc{};
        int last = first;
        if (is_good && parsed.ptr != end && *parsed.ptr == '-') {
            parsed = std::from_chars(parsed.ptr + 1, end, last);
            is_good = parsed.ec == std::errc{};
        }
        if (!is_good || parsed.ptr != end || last < first || last - first > most_of_a_kind) {
            report(node, fmt::format("'{}' is no vertex; write a name such as gpu0 or a range such as gpu0-7", text));
            return {};
        }
        return find_range(node, text.substr(0, digits), first, last);
    }

    std::vector<VertexId> find_range(const Node& node, const std::string& kind_name, int first, int last) {
        std::vector<VertexId> found;
        for (int i = first; i <= last; ++i) {
            const std::string name = fmt::format("{}{}", kind_name, i);
            const auto at = std::ranges::find(topology_.vertices, name, &Vertex::name);
            if (at == topology_.vertices.end()) {
                std::vector<std::string> names;
                for (const Vertex& v : topology_.vertices) names.push_back(v.name);
                report(node, fmt::format("no vertex '{}' (see `vertices`){}", name, config::did_you_mean(name, names)));
                return {};
            }
            found.push_back({static_cast<std::int32_t>(at - topology_.vertices.begin())});
        }
        return found;
    }

    std::optional<LinkKind> read_kind(const Node& node) {
        std::vector<std::string> names;
        for (const LinkKind kind : link_kinds) {
            if (node.text() == to_string(kind)) return kind;
            names.emplace_back(to_string(kind));
        }
        report(node, fmt::format("'{}' is no kind of link{}; use one of {}", node.text(),
                                 config::did_you_mean(node.text(), names), fmt::join(names, ", ")));
        return std::nullopt;
    }

    std::optional<int> read_count(const Node& node) {
        const std::string& text = node.text();
        int count = 0;
        const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), count);
        if (ec == std::errc{} && ptr == text.data() + text.size() && count >= 1 && count <= most_of_a_kind)
            return count;
        report(node, fmt::format("a count of links is a whole number of at least 1, got '{}'", text));
        return std::nullopt;
    }

    std::optional<Bandwidth> read_rate(const Node& node) {
        try {
            const Bandwidth rate = config::parse_bandwidth(node.text());
            if (rate.value > 0) return rate;
            report(node, "the rate of a link must be above 0");
        } catch (const InputError& error) { report(node, error.what()); }
        return std::nullopt;
    }

    std::optional<Bandwidth> default_rate(const Node& node, LinkKind kind) {
        const Bandwidth rate = rates_.of(kind);
        if (rate.value > 0) return rate;
        report(node,
               fmt::format("the rate of a {0} link is not known; write rates: {{{0}: 20 GB/s}}", to_string(kind)));
        return std::nullopt;
    }

    Topology& topology_;
    const Rates& rates_;
    Diagnostics& diagnostics_;
};

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
    const Rates rates = read_rates(machine, device);
    LinkReader reader(topology, rates, diagnostics);
    if (machine.has("links"))
        for (const Node& item : machine.nodes("links")) reader.read(item);
    if (diagnostics.count() != before) return topology;
    spread_numa(topology);
    for (const std::string& fault : find_faults(topology, device)) machine.error("links", fault);
    return topology;
}

}  // namespace lockstep::machine
