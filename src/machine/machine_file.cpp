#include "machine/machine_file.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "machine/catalog.hpp"
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

/// {node, count, network}: `count` nodes as another machine file describes them.
Machine read_cluster(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    Object object(node, "cluster", diagnostics);
    Machine machine;
    const std::string node_name = object.text("node");
    if (!node_name.empty())
        machine = at_place(object.node("node")->where(), diagnostics, [&] {
                      return load_machine(data, node_name);
                  }).value_or(Machine{});
    if (machine.nodes > 1)
        object.error("node", fmt::format("'{}' is a cluster itself; name a machine of one node", node_name));
    machine.nodes = static_cast<int>(object.integer("count", 1, 1'000'000));
    if (const auto network = object.node("network"))
        machine.network =
            at_place(network->where(), diagnostics, [&] { return load_network(data, *network, diagnostics); });
    else if (machine.nodes > 1)
        object.error("network", fmt::format("key 'network' is missing ({} nodes need one), such as network: ib-hdr-8",
                                            machine.nodes));
    if (machine.network && machine.network->nics_per_node == 0 && machine.node.nics() == 0 && machine.nodes > 1)
        object.error("network", "says no nics_per_node, and the node has no NIC; write nics_per_node");
    machine.name = fmt::format("{}x{}", machine.nodes, node_name);
    machine.title = object.text_or("title", fmt::format("{} x {}", machine.nodes, machine.title));
    for (std::string& source : texts_if_any(object, "sources")) machine.sources.push_back(std::move(source));
    for (std::string& note : texts_if_any(object, "notes")) machine.notes.push_back(std::move(note));
    object.finish();
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
    object.finish();
    return machine;
}

}  // namespace

Calibration calibration_of(const DataPath& data, const Device& device) {
    if (!device.calibration.empty()) return load_calibration(data, device.calibration);
    if (is_known(data, calibration_folder, device.name)) return load_calibration(data, device.name);
    return {};
}

Machine read_machine(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    return node.find("node") != nullptr ? read_cluster(data, node, diagnostics) : read_node(data, node, diagnostics);
}

}  // namespace lockstep::machine
