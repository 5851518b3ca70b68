#include "machine/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "machine/topology_check.hpp"

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

/// A plain number is a share; anything else has to be a bandwidth.
void read_rate(Object& object, Fault& fault) {
    const std::string text = object.text("rate");
    if (text.empty()) return;
    double share = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
    if (error == std::errc{} && end == text.data() + text.size()) {
        if (share > 0 && share < 1)
            fault.share = share;
        else
            object.error("rate", fmt::format("{} is no share between 0 and 1 of the normal rate; write such a share, a "
                                             "bandwidth (10 GB/s), or missing: true",
                                             text));
        return;
    }
    const std::size_t before = object.diagnostics().count();
    fault.rate = object.bandwidth("rate");
    if (!(fault.rate->value > 0) && object.diagnostics().count() == before)
        object.error("rate", "must be above 0; of a link that carries nothing write missing: true");
}

Fault read_fault(const Node& item, Diagnostics& diagnostics) {
    Object object(item, "fault", diagnostics);
    Fault fault;
    fault.where = item.where();
    fault.node = static_cast<int>(object.integer_or("node", 0, 0, 1'000'000));
    const bool has_link = object.has("link"), has_nic = object.has("nic");
    if (has_link) fault.link = object.texts("link");
    if (has_link && fault.link.size() != 2) object.error("link", "wants its two ends, such as [gpu0, gpu1]");
    if (has_nic) fault.nic = static_cast<int>(object.integer("nic", 0, 1'000'000));
    if (has_link == has_nic && item.is_mapping())
        object.error("",
                     "a fault is of one link or one nic, such as {link: [gpu0, gpu1], rate: 0.5} or {nic: 4, "
                     "missing: true}");
    const bool is_missing = object.flag_or("missing", false);
    const bool has_rate = object.has("rate");
    if (has_rate) read_rate(object, fault);
    if (is_missing == has_rate && item.is_mapping())
        object.error("", "a fault says rate (what is left) or missing: true, one of the two");
    object.finish();
    return fault;
}

Bandwidth left_of(const Fault& fault, Bandwidth normal) {
    if (fault.share) return *fault.share * normal;
    return fault.rate.value_or(Bandwidth{0});
}

std::string left_text(const Fault& fault, Bandwidth normal) {
    if (!fault.share && !fault.rate) return "missing";
    return fmt::format("at {} of {}", config::format(left_of(fault, normal)), config::format(normal));
}

/// Throws InputError when what is left isn't below the normal rate.
void require_below(const Fault& fault, Bandwidth normal, const std::string& what) {
    if (fault.rate && !(*fault.rate < normal))
        throw InputError(fmt::format("faults: {} normally carries {}, and a fault leaves less of it, not {}", what,
                                     config::format(normal), config::format(*fault.rate)));
}

VertexId vertex_named(const Topology& topology, const std::string& name, int node) {
    const auto at = std::ranges::find(topology.vertices, name, &Vertex::name);
    if (at != topology.vertices.end()) return {static_cast<std::int32_t>(at - topology.vertices.begin())};
    std::vector<std::string> names;
    for (const Vertex& v : topology.vertices) names.push_back(v.name);
    throw InputError(fmt::format("faults: node {} has no '{}'{}; `machine show` lists what it has", node, name,
                                 config::did_you_mean(name, names)));
}

std::string change_links(Topology& topology, const Fault& fault) {
    const VertexId a = vertex_named(topology, fault.link[0], fault.node);
    const VertexId b = vertex_named(topology, fault.link[1], fault.node);
    const std::string ends = fault.link[0] + "-" + fault.link[1];
    std::string text;
    for (Link& link : topology.links) {
        if (!((link.a == a && link.b == b) || (link.a == b && link.b == a))) continue;
        const std::string what = fmt::format("{} {}", ends, to_string(link.kind));
        require_below(fault, link.per_direction, what);
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, left_text(fault, link.per_direction));
        const Bandwidth left = left_of(fault, link.per_direction);
        link.left *= left / link.per_direction;
        link.per_direction = left;
    }
    if (text.empty())
        throw InputError(fmt::format("faults: no link joins {} and {} in node {}; `machine show` lists the links",
                                     fault.link[0], fault.link[1], fault.node));
    std::erase_if(topology.links, [](const Link& link) { return !(link.per_direction.value > 0); });
    return text;
}

std::string change_nic(std::vector<Bandwidth>& nics, const Fault& fault, const Machine& machine) {
    if (!machine.network)
        throw InputError(
            "faults: a NIC is of a network, and this machine has none; write the fault where nodes and "
            "network are");
    if (nics.empty()) nics = machine.nics_of(fault.node);
    if (fault.nic >= static_cast<int>(nics.size()))
        throw InputError(fmt::format("faults: node {} has no nic {} (it has {}); use 0 to {}", fault.node, fault.nic,
                                     nics.size(), static_cast<int>(nics.size()) - 1));
    Bandwidth& nic = nics[static_cast<std::size_t>(fault.nic)];
    const std::string what = fmt::format("nic{}", fault.nic);
    require_below(fault, nic, what);
    const std::string text = fmt::format("{} {}", what, left_text(fault, nic));
    nic = left_of(fault, nic);
    const bool is_cut_off = machine.nodes > 1 && std::ranges::none_of(nics, [](Bandwidth b) { return b.value > 0; });
    if (is_cut_off)
        throw InputError(
            fmt::format("faults: node {} is left without any NIC, so that its ranks can't reach the other "
                        "nodes; leave it one, or take the node out",
                        fault.node));
    return text;
}

/// The text of what was changed.
std::string change(NodeKind& kind, const Fault& fault, const Machine& machine) {
    if (fault.link.empty()) return change_nic(kind.nics, fault, machine);
    const std::string text = change_links(kind.topology, fault);
    const auto broken = find_faults(kind.topology, kind.device);
    if (!broken.empty())
        throw InputError(fmt::format("faults: with {} in node {}, {}", text, fault.node, fmt::join(broken, "; ")));
    return text;
}

}  // namespace

std::vector<Fault> read_faults(Object& owner) {
    std::vector<Fault> faults;
    if (!owner.has("faults")) return faults;
    for (const Node& item : owner.nodes("faults")) faults.push_back(read_fault(item, owner.diagnostics()));
    return faults;
}

void apply_faults(Machine& machine, const std::vector<Fault>& faults, Diagnostics& diagnostics) {
    if (faults.empty()) return;
    std::map<int, std::vector<const Fault*>> by_node;
    for (const Fault& fault : faults) {
        if (fault.node < machine.nodes)
            by_node[fault.node].push_back(&fault);
        else
            diagnostics.error(fault.where, fmt::format("faults: no node {} (the machine has {}, from 0 on)", fault.node,
                                                       machine.nodes));
    }
    std::vector<NodeKind> kinds = kinds_of(machine);
    std::vector<int> of_node = machine.kind_of_node;
    of_node.resize(static_cast<std::size_t>(machine.nodes), 0);
    std::map<std::pair<int, std::string>, int> made;  // by what the node was and what is wrong with it
    for (const auto& [node, its_faults] : by_node) {
        int& kind = of_node[static_cast<std::size_t>(node)];
        NodeKind changed = kinds[static_cast<std::size_t>(kind)];
        std::string all;
        for (const Fault* fault : its_faults) try {
                const std::string text = change(changed, *fault, machine);
                machine.faults.push_back({node, text});
                all += text + "\n";
            } catch (const InputError& error) { diagnostics.error(fault->where, error.what()); }
        const auto [known, is_new] = made.try_emplace({kind, all}, static_cast<int>(kinds.size()));
        if (is_new) kinds.push_back(std::move(changed));
        kind = known->second;
    }
    set_kinds(machine, kinds, of_node);
}

}  // namespace lockstep::machine
