#include "machine/machine_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "machine/catalog.hpp"
#include "machine/cluster_form.hpp"
#include "machine/field.hpp"
#include "machine/topology_file.hpp"

namespace lockstep::machine {

namespace {

using config::DataPath;
using config::Diagnostics;
using config::Node;
using config::Object;

constexpr std::string_view network_folder = "topology/networks";
constexpr std::string_view calibration_folder = "topology/calibration";

bool is_known(const DataPath& data, std::string_view folder, std::string_view name) {
    for (const std::string& known : data.names(folder))
        if (known == name) return true;
    return false;
}

Calibration load_calibration(const DataPath& data, const std::string& name) {
    const auto file = data.find("calibration", calibration_folder, name);
    Diagnostics diagnostics;
    Calibration calibration = read_calibration(config::parse_file(file), diagnostics);
    diagnostics.throw_if_any();
    return calibration;
}

/// `calibration: NAME` replaces the device's set, `calibration: {gemm: 0.7, source: ...}` some of its constants.
Calibration read_machine_calibration(const DataPath& data, Object& machine, const Device& device) {
    Diagnostics& diagnostics = machine.diagnostics();
    const auto node = machine.node("calibration");
    if (node && node->is_scalar())
        return at_place(node->where(), diagnostics, [&] { return load_calibration(data, node->text()); })
            .value_or(Calibration{});
    const Calibration base = at_place(machine.self().where(), diagnostics, [&] {
                                 return calibration_of(data, device);
                             }).value_or(Calibration{});
    if (!node) return base;
    Calibration result = read_calibration(*node, diagnostics, base);
    if (!has_all_constants(*node)) result.source += "; the rest: " + base.source;
    return result;
}

Network load_network(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    if (node.is_mapping()) return read_network(node, diagnostics);
    const auto file = data.find("network", network_folder, node.text());
    Network network = read_network(config::parse_file(file), diagnostics);
    network.name = file.stem().string();
    return network;
}

/// One machine file for each entry of `nodes`; none for one that can't be read or isn't of one node.
std::vector<std::optional<Machine>> load_nodes(const DataPath& data, const ClusterForm& form,
                                               Diagnostics& diagnostics) {
    std::vector<std::optional<Machine>> machines;
    for (const NodeCount& some : form.nodes) {
        machines.emplace_back();
        if (some.node.empty()) continue;
        machines.back() = at_place(some.where, diagnostics, [&] { return load_machine(data, some.node); });
        if (!machines.back()) continue;
        if (machines.back()->nodes > 1)
            diagnostics.error(some.where,
                              fmt::format("node: '{}' is a cluster itself; name a machine of one node", some.node));
        const auto& first = machines.front();
        if (first && machines.back()->devices_per_node() != first->devices_per_node())
            diagnostics.error(some.where, fmt::format("nodes: {} has {} devices and {} has {}; all nodes of a machine "
                                                      "have the same number",
                                                      some.node, machines.back()->devices_per_node(),
                                                      form.nodes.front().node, first->devices_per_node()));
        if (first && machines.back()->device.kind != first->device.kind)
            diagnostics.error(some.where, fmt::format("nodes: CPUs and GPUs can't train together ({} beside {})",
                                                      some.node, form.nodes.front().node));
    }
    return machines;
}

void add_new(std::vector<std::string>& texts, const std::vector<std::string>& more) {
    for (const std::string& text : more)
        if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

/// All nodes together, numbered in the order of the form. Nodes of one name are of one kind.
Machine join_nodes(const ClusterForm& form, const std::vector<std::optional<Machine>>& nodes) {
    Machine machine;
    std::vector<NodeKind> kinds;
    std::vector<int> of_node;
    std::map<std::string, int> kind_of_name;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Machine& node = *nodes[i];
        const int count = form.nodes[i].count;
        const auto [known, is_new] = kind_of_name.try_emplace(form.nodes[i].node, static_cast<int>(kinds.size()));
        if (is_new) kinds.push_back(kinds_of(node).front());
        for (const NodeFault& fault : node.faults)
            for (int k = 0; k < count; ++k)
                machine.faults.push_back({static_cast<int>(of_node.size()) + k, fault.text});
        of_node.insert(of_node.end(), static_cast<std::size_t>(count), known->second);
        machine.title += fmt::format("{}{} x {}", i == 0 ? "" : " + ", count, node.title);
        add_new(machine.sources, node.sources);
        add_new(machine.notes, node.notes);
    }
    set_kinds(machine, kinds, of_node);
    return machine;
}

void check_network(const Machine& machine, const Node& node, Diagnostics& diagnostics) {
    const auto where = node.find("network") != nullptr ? node.find("network")->where() : node.where();
    if (machine.nodes > 1 && !machine.network)
        diagnostics.error(where, fmt::format("key 'network' is missing ({} nodes need one), such as network: ib-hdr-8",
                                             machine.nodes));
    if (!machine.network || machine.network->nics_per_node > 0 || machine.nodes == 1) return;
    for (const NodeKind& kind : kinds_of(machine))
        if (kind.topology.nics() == 0)
            return diagnostics.error(where,
                                     "network: says no nics_per_node, and a node has no NIC; write nics_per_node");
}

/// {node, count, network} or {nodes, network}: nodes as other machine files describe them.
Machine read_cluster(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    const ClusterForm form = read_cluster_form(node, diagnostics);
    const auto nodes = load_nodes(data, form, diagnostics);
    std::optional<Network> network;
    if (form.network)
        network = at_place(form.network->where(), diagnostics,
                           [&] { return load_network(data, *form.network, diagnostics); });
    if (diagnostics.count() != before) return {};
    Machine machine = join_nodes(form, nodes);
    machine.network = std::move(network);
    check_network(machine, node, diagnostics);
    apply_faults(machine, form.faults, diagnostics);
    machine.name = form.name();
    if (form.title) machine.title = *form.title;
    add_new(machine.sources, form.sources);
    add_new(machine.notes, form.notes);
    return machine;
}

/// `device: NAME`, or a device document in place, whose title is then its name; none when there is an error.
std::optional<Device> read_node_device(const DataPath& data, Object& machine) {
    Diagnostics& diagnostics = machine.diagnostics();
    const auto node = machine.node("device");
    if (node && node->is_mapping()) {
        const std::size_t before = diagnostics.count();
        Device device = read_device(*node, diagnostics);
        device.name = device.title;
        return diagnostics.count() == before ? std::optional(device) : std::nullopt;
    }
    const std::string name = machine.text("device");
    if (name.empty()) return std::nullopt;
    return at_place(node->where(), diagnostics, [&] { return load_device(data, name); });
}

Machine read_node(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    Object object(node, "machine", diagnostics);
    Machine machine;
    machine.title = object.text("title");
    const auto device = read_node_device(data, object);
    machine.device = device.value_or(Device{});
    machine.sources = texts_if_any(object, "sources");
    machine.notes = texts_if_any(object, "notes");
    machine.calibration = read_machine_calibration(data, object, machine.device);
    if (device)
        machine.node = read_topology(object, machine.device);
    else  // without the device's rates every link would be one more error
        for (const auto* key : {"vertices", "numa", "rates", "host_bridges", "peer_access", "links"}) object.node(key);
    const std::vector<Fault> faults = read_faults(object);
    object.finish();
    if (diagnostics.count() == before) apply_faults(machine, faults, diagnostics);
    return machine;
}

}  // namespace

Calibration calibration_of(const DataPath& data, const Device& device) {
    if (!device.calibration.empty()) return load_calibration(data, device.calibration);
    if (is_known(data, calibration_folder, device.name)) return load_calibration(data, device.name);
    return {};
}

Machine read_machine(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    return is_cluster(node) ? read_cluster(data, node, diagnostics) : read_node(data, node, diagnostics);
}

}  // namespace lockstep::machine
