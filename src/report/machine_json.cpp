#include "machine/smi_matrix.hpp"
#include "report/machine_tables.hpp"
#include "report/node_kinds.hpp"

namespace lockstep::report {

namespace {

using machine::Link;
using machine::Machine;
using machine::Topology;

config::Json topology_json(const Topology& topology) {
    config::Json json = config::Json::object();
    config::Json vertices = config::Json::array();
    for (const auto& v : topology.vertices) {
        config::Json& item = vertices.push(config::Json::object());
        item.set("name", v.name);
        item.set("kind", machine::to_string(v.kind));
        item.set("numa_node", v.numa_node < 0 ? config::Json() : config::Json(v.numa_node));
    }
    json.set("vertices", std::move(vertices));
    config::Json links = config::Json::array();
    for (const Link& link : topology.links) {
        config::Json& item = links.push(config::Json::object());
        item.set("a", topology.vertices[link.a.index()].name);
        item.set("b", topology.vertices[link.b.index()].name);
        item.set("kind", machine::to_string(link.kind));
        item.set("count", link.count);
        item.set("per_direction", link.per_direction.value);
    }
    json.set("links", std::move(links));
    return json;
}

config::Json matrix_json(const Topology& topology) {
    config::Json json = config::Json::object();
    const auto devices = machine::smi_devices(topology);
    config::Json names = config::Json::array(), rows = config::Json::array();
    for (const auto from : devices) {
        names.push(topology.vertices[from.index()].name);
        config::Json& row = rows.push(config::Json::array());
        for (const auto to : devices) row.push(from == to ? "X" : machine::smi_cell(topology, from, to));
    }
    json.set("names", std::move(names));
    json.set("rows", std::move(rows));
    return json;
}

config::Json rings_json(const Topology& node) {
    const auto rings = machine::rings_of_node(node);
    if (!rings) return {};
    config::Json channels = config::Json::array();
    for (const auto& ring : rings->rings) {
        config::Json& channel = channels.push(config::Json::array());
        for (const int gpu : ring) channel.push(gpu);
    }
    config::Json json = config::Json::object();
    json.set("channels", std::move(channels));
    json.set("per_channel", rings->per_channel.value);
    json.set("total", rings->total().value);
    json.set("proximity", machine::to_string(rings->proximity));
    return json;
}

config::Json network_json(const Machine& m) {
    if (!m.network) return {};
    const machine::Network& n = *m.network;
    config::Json json = config::Json::object();
    json.set("name", n.name);
    json.set("per_nic", n.per_nic.value);
    json.set("nics_per_node", n.nics_per_node > 0 ? n.nics_per_node : m.node.nics());
    json.set("latency_s", n.latency.value);
    json.set("oversubscription", n.oversubscription);
    json.set("nodes_per_leaf", n.nodes_per_leaf);
    json.set("rails", n.has_rails);
    config::Json& sources = json.set("sources", config::Json::array());
    for (const std::string& source : n.sources) sources.push(source);
    return json;
}

config::Json calibration_json(const machine::Calibration& c) {
    config::Json json = config::Json::object();
    json.set("gemm", c.gemm);
    json.set("convolution", c.convolution);
    json.set("attention", c.attention);
    json.set("memory", c.memory);
    json.set("gemm_half_work_gflop", c.gemm_half_work_gflop);
    json.set("kernel_overhead_s", c.kernel_overhead.value);
    json.set("host_per_op_s", c.host_per_op.value);
    json.set("link", c.link);
    json.set("collective_base_s", c.collective_base.value);
    json.set("per_hop_s", c.per_hop.value);
    json.set("network_per_hop_s", c.network_per_hop.value);
    json.set("network", c.network);
    json.set("compute_slowdown", c.compute_slowdown);
    json.set("source", c.source);
    config::Json& sources = json.set("constant_sources", config::Json::array());
    for (const std::string& source : c.constant_sources) sources.push(source);
    return json;
}

/// [[first, last], ...] of the nodes of a kind.
config::Json node_ranges_json(const Machine& m, int kind) {
    config::Json ranges = config::Json::array();
    for (const auto& [first, last] : node_ranges(m, kind)) {
        config::Json& range = ranges.push(config::Json::array());
        range.push(first);
        range.push(last);
    }
    return ranges;
}

config::Json kinds_json(const Machine& m) {
    config::Json kinds = config::Json::array();
    for (int k = 0; k < m.kinds(); ++k) {
        const int node = m.first_of_kind(k);
        config::Json& kind = kinds.push(config::Json::object());
        kind.set("nodes", node_ranges_json(m, k));
        kind.set("device", m.device_of(node).name);
        const config::Json topology = topology_json(m.topology_of(node));
        for (const auto& [key, value] : std::get<config::Json::Object>(topology.value())) kind.set(key, value);
        kind.set("rings", rings_json(m.topology_of(node)));
        config::Json& nics = kind.set("nics", config::Json::array());
        for (const Bandwidth rate : m.nics_of(node)) nics.push(rate.value);
        kind.set("calibration", calibration_json(m.calibration_of(node)));
    }
    return kinds;
}

config::Json faults_json(const Machine& m) {
    config::Json faults = config::Json::array();
    for (const machine::NodeFault& fault : m.faults) {
        config::Json& item = faults.push(config::Json::object());
        item.set("node", fault.node);
        item.set("fault", fault.text);
    }
    return faults;
}

}  // namespace

config::Json machine_json(const Machine& m) {
    config::Json json = config::Json::object();
    json.set("name", m.name);
    json.set("title", m.title);
    json.set("file", m.file.string());
    json.set("nodes", m.nodes);
    json.set("devices_per_node", m.devices_per_node());
    json.set("device", device_json(m.device));
    const config::Json topology = topology_json(m.node);
    for (const auto& [key, value] : std::get<config::Json::Object>(topology.value())) json.set(key, value);
    json.set("matrix", matrix_json(m.node));
    json.set("rings", rings_json(m.node));
    json.set("network", network_json(m));
    json.set("calibration", calibration_json(m.calibration));
    if (m.kinds() > 1) json.set("kinds", kinds_json(m));
    json.set("faults", faults_json(m));
    config::Json& notes = json.set("notes", config::Json::array());
    for (const std::string& note : m.notes) notes.push(note);
    config::Json& sources = json.set("sources", config::Json::array());
    for (const std::string& source : m.sources) sources.push(source);
    return json;
}

config::Json machine_list_json(const std::vector<Machine>& machines) {
    config::Json json = config::Json::array();
    for (const Machine& m : machines) json.push(machine_json(m));
    return json;
}

}  // namespace lockstep::report
