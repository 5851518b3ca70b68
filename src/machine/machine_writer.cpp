#include "machine/machine_writer.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "config/json.hpp"

namespace lockstep::machine {

namespace {

/// In quotes, since YAML gives a meaning to what a name may hold.
std::string quoted(const std::string& text) { return config::Json(text).dump(-1); }

std::string list(const std::string& key, const std::vector<std::string>& texts) {
    if (texts.empty()) return "";
    std::string lines = key + ":\n";
    for (const std::string& text : texts) lines += fmt::format("  - {}\n", quoted(text));
    return lines;
}

std::string rate(Bandwidth rate) { return fmt::format("{:.6g} GB/s", rate.value / 1e9); }
std::string rate(FlopRate rate) { return fmt::format("{:.6g} TFLOPS", rate.value / 1e12); }
std::string size(Bytes bytes) { return fmt::format("{:.6g} MiB", bytes.value / 1048576); }

std::string peak_line(const PeakRate& peak) {
    return fmt::format("    - {{type: {}, dense: {}{}{}}}\n", to_string(peak.type), rate(peak.dense),
                       peak.sparse ? ", sparse: " + rate(*peak.sparse) : "",
                       peak.tensor_core ? ", tensor_core: true" : "");
}

std::string device_lines(const Device& d) {
    if (!d.file.empty()) return fmt::format("device: {}\n", quoted(d.name));
    std::string text =
        fmt::format("device:\n  title: {}\n  kind: {}\n", quoted(d.title), d.kind == DeviceKind::cpu ? "cpu" : "gpu");
    const auto add = [&](std::string_view key, const std::string& value) {
        text += fmt::format("  {}: {}\n", key, value);
    };
    if (!d.architecture.empty()) add("architecture", quoted(d.architecture));
    if (!d.compute_capability.empty()) add("compute_capability", quoted(d.compute_capability));
    if (!d.peaks.empty()) text += "  peaks:\n";
    for (const PeakRate& peak : d.peaks) text += peak_line(peak);
    add("memory", size(d.memory));
    add("memory_bandwidth", rate(d.memory_bandwidth));
    if (d.l2.value > 0) add("l2", size(d.l2));
    add("sms", fmt::format("{}", d.sms));
    if (d.nvlink.links > 0)
        add("nvlink", fmt::format("{{generation: {}, links: {}, per_link: {}}}", d.nvlink.generation, d.nvlink.links,
                                  rate(d.nvlink.per_link)));
    if (d.pcie.lanes > 0)
        add("pcie", fmt::format("{{generation: {}, lanes: {}, per_direction: {}}}", d.pcie.generation, d.pcie.lanes,
                                rate(d.pcie.per_direction)));
    for (const auto& [key, texts] : {std::pair("sources", &d.sources), std::pair("notes", &d.notes)}) {
        if (texts->empty()) continue;
        text += fmt::format("  {}:\n", key);
        for (const std::string& item : *texts) text += fmt::format("    - {}\n", quoted(item));
    }
    return text;
}

std::string node_lines(const Topology& node) {
    std::string vertices, numa, text;
    for (const VertexKind kind :
         {VertexKind::gpu, VertexKind::nvswitch, VertexKind::pcie_switch, VertexKind::cpu, VertexKind::nic}) {
        int count = 0;
        for (const Vertex& v : node.vertices) {
            if (v.kind != kind) continue;
            ++count;
            if (kind == VertexKind::cpu)
                numa += fmt::format("{}{}", numa.empty() ? "" : ", ", std::max(v.numa_node, 0));
        }
        if (count > 0) vertices += fmt::format("{}{}: {}", vertices.empty() ? "" : ", ", to_string(kind), count);
    }
    text += fmt::format("vertices: {{{}}}\n", vertices);
    if (!numa.empty()) text += fmt::format("numa: [{}]\n", numa);
    if (node.host_bridges == HostBridges::one_per_cpu) text += "host_bridges: one_per_cpu\n";
    if (node.peer_access == PeerAccess::through_host) text += "peer_access: through_host\n";
    if (!node.links.empty()) text += "links:\n";
    for (const Link& link : node.links)
        text += fmt::format("  - [{}, {}, {}, {}, {}]\n", node.vertices[link.a.index()].name,
                            node.vertices[link.b.index()].name, to_string(link.kind), link.count,
                            rate(link.per_direction / link.count));
    return text;
}

std::string calibration_lines(const Calibration& c) {
    std::string text = fmt::format("calibration:\n  source: {}\n", quoted(c.source));
    const auto add = [&](const std::string& key, const std::string& value) {
        const std::string prefix = key + ": ";
        for (const std::string& source : c.constant_sources) {
            if (!source.starts_with(prefix)) continue;
            text +=
                fmt::format("  {}:\n    value: {}\n    source: {}\n", key, value, quoted(source.substr(prefix.size())));
            return;
        }
        text += fmt::format("  {}: {}\n", key, value);
    };
    const auto number = [](double value) { return fmt::format("{:.6g}", value); };
    const auto time = [](Seconds value) { return fmt::format("{:.6g} us", value.value * 1e6); };
    add("gemm", number(c.gemm));
    add("convolution", number(c.convolution));
    add("attention", number(c.attention));
    add("memory", number(c.memory));
    add("gemm_half_work_gflop", number(c.gemm_half_work_gflop));
    add("kernel_overhead", time(c.kernel_overhead));
    add("host_per_op", time(c.host_per_op));
    add("link", number(c.link));
    add("collective_base", time(c.collective_base));
    add("per_hop", time(c.per_hop));
    add("network_per_hop", time(c.network_per_hop));
    add("network", number(c.network));
    add("compute_slowdown", number(c.compute_slowdown));
    return text;
}

}  // namespace

std::string machine_text(const Machine& machine) {
    if (machine.nodes != 1) throw LogicError("a cluster is written as a machine of one node");
    return fmt::format("title: {}\n", quoted(machine.title)) + device_lines(machine.device) + node_lines(machine.node) +
           calibration_lines(machine.calibration) + list("sources", machine.sources) + list("notes", machine.notes);
}

}  // namespace lockstep::machine
