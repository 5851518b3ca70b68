#include "report/machine_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/quantity.hpp"
#include "machine/smi_matrix.hpp"
#include "report/calibration_tables.hpp"
#include "report/node_kinds.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

using machine::Link;
using machine::Machine;
using machine::Topology;

/// "6 x 25 GB/s = 150 GB/s".
std::string rings_text(const Topology& node) {
    const auto rings = machine::rings_of_node(node);
    if (!rings) return "-";
    return fmt::format("{} x {} = {}", rings->rings.size(), config::format(rings->per_channel),
                       config::format(rings->total()));
}

std::string network_text(const Machine& m) {
    if (!m.network) return "-";
    const int nics = m.network->nics_per_node > 0 ? m.network->nics_per_node : m.node.nics();
    return fmt::format("{} x {}", nics, config::format(m.network->per_nic));
}

/// "gpu 0-7" for indices that follow each other.
std::string ranges_text(std::string_view kind, const std::vector<int>& indices) {
    std::string text(kind);
    for (std::size_t i = 0; i < indices.size();) {
        std::size_t last = i;
        while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
        text += fmt::format("{}{}", i == 0 ? "" : ",", indices[i]);
        if (last > i) text += fmt::format("-{}", indices[last]);
        i = last + 1;
    }
    return text;
}

/// Links of one vertex to vertices of one kind by equal bundles are one row: "gpu0  nvswitch0-5  nvlink  2  50 GB/s".
std::string links_table(const Topology& topology) {
    struct Row {
        Link link;
        std::string from, kind_of_ends;
        std::vector<int> ends;
    };
    std::vector<Row> rows;
    for (const Link& link : topology.links) {
        const auto &a = topology.vertices[link.a.index()], &b = topology.vertices[link.b.index()];
        const std::string kind(machine::to_string(b.kind));
        const auto same = std::ranges::find_if(rows, [&](const Row& r) {
            return r.link.a == link.a && r.link.kind == link.kind && r.link.count == link.count &&
                   r.link.per_direction == link.per_direction && r.kind_of_ends == kind;
        });
        if (same != rows.end())
            same->ends.push_back(b.index);
        else
            rows.push_back({link, a.name, kind, {b.index}});
    }
    Table table({{"from", Align::left}, {"to", Align::left}, {"link", Align::left}, {"count"}, {"each way"}});
    for (const Row& row : rows)
        table.add({row.from, ranges_text(row.kind_of_ends, row.ends), std::string(machine::to_string(row.link.kind)),
                   std::to_string(row.link.count), config::format(row.link.per_direction)});
    return table.text("  ");
}

/// Equal rings are one line with their number.
std::string rings_lines(const Topology& node) {
    const auto rings = machine::rings_of_node(node);
    if (!rings) return "";
    std::vector<std::pair<std::vector<int>, int>> counted;
    for (const auto& ring : rings->rings) {
        const auto same = std::ranges::find(counted, ring, &std::pair<std::vector<int>, int>::first);
        same == counted.end() ? counted.emplace_back(ring, 1) : (++same->second, *same);
    }
    std::string text =
        fmt::format("\nRing channels over the {} devices of a node: {}\n", node.gpus(), rings_text(node));
    for (const auto& [ring, count] : counted)
        text += wrapped(fmt::format("{}", fmt::join(ring, " ")), fmt::format("  {:>3} x  ", count));
    return text;
}

std::string leaves_text(const machine::Network& n) {
    if (n.nodes_per_leaf == 1) return "";
    return fmt::format(", {} nodes a {}", n.nodes_per_leaf, n.has_rails ? "rail" : "leaf");
}

std::string network_lines(const Machine& m) {
    if (!m.network) return "";
    const machine::Network& n = *m.network;
    return wrapped(
        fmt::format("{}: {} in a node, {} one way{}", n.name.empty() ? "in place" : n.name, network_text(m),
                    config::format(n.latency),
                    n.oversubscription > 1 ? fmt::format(", oversubscribed {:g}:1", n.oversubscription) : "") +
            leaves_text(n),
        "  network  ");
}

/// What a node of this kind has; of one that differs from the first kind by faults alone, what its rings become.
std::string kind_lines(const Machine& m, int kind) {
    const int node = m.first_of_kind(kind);
    const Topology& topology = m.topology_of(node);
    const bool is_new =
        kind == 0 || m.device_of(node).name != m.device.name || topology.vertices.size() != m.node.vertices.size();
    std::string text;
    if (m.kinds() > 1) text += wrapped(fmt::format("{} of {}", nodes_text(m, kind), m.device_of(node).name), "\n");
    if (is_new)
        text += fmt::format("\n{}\nLinks of a node\n{}", machine::format_smi_matrix(topology), links_table(topology));
    text += rings_lines(topology);
    if (is_new) text += format_constants(m.calibration_of(node));
    return text;
}

bool is_faulty(const Machine& m, int kind) {
    return std::ranges::any_of(m.faults, [&](const auto& fault) { return m.kind_of(fault.node) == kind; });
}

std::vector<std::string> fault_texts(const Machine& m) {
    std::vector<std::string> texts;
    for (const machine::NodeFault& fault : m.faults)
        texts.push_back(fmt::format("node {}: {}", fault.node, fault.text));
    return texts;
}

}  // namespace

std::string format_machine_list(const std::vector<Machine>& machines) {
    Table table(
        {{"machine", Align::left}, {"nodes"}, {"devices"}, {"device", Align::left}, {"ring channels"}, {"network"}});
    for (const Machine& m : machines)
        table.add({m.name, std::to_string(m.nodes), std::to_string(m.devices()), m.device.name, rings_text(m.node),
                   network_text(m)});
    return table.text() + "Ring channels over the devices of one node, one direction; `machine show NAME` has more.\n";
}

std::string format_machine(const Machine& m) {
    std::string text = fmt::format("{}: {}\n", m.name, m.title);
    for (int kind = 0; kind < m.kinds(); ++kind) {
        const int count = kind_count(m, kind);
        text += fmt::format("  {} node{} of {} {}{}\n", count, count == 1 ? "" : "s", m.devices_per_node(),
                            m.device_of_kind(kind).name, is_faulty(m, kind) ? ", not whole" : "");
    }
    text += network_lines(m) + wrapped_list("Slow or missing", fault_texts(m));
    for (int kind = 0; kind < m.kinds(); ++kind) text += kind_lines(m, kind);
    text += wrapped_list("Notes", m.notes) + wrapped_list("Sources", m.sources);
    if (m.network) text += wrapped_list("Sources of the network", m.network->sources);
    if (!m.file.empty()) text += fmt::format("\nFile: {}\n", m.file.string());
    return text;
}

}  // namespace lockstep::report
