#include "machine/smi_matrix.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "machine/route.hpp"

namespace lockstep::machine {

namespace {

constexpr std::string_view legend = R"(Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
)";

std::string smi_name(const Vertex& v) {
    return fmt::format("{}{}", v.kind == VertexKind::gpu ? "GPU" : "NIC", v.index);
}

std::string numa_text(const Vertex& v) { return v.numa_node < 0 ? "N/A" : std::to_string(v.numa_node); }

}  // namespace

std::string_view to_string(Proximity proximity) {
    switch (proximity) {
        case Proximity::self: return " X ";
        case Proximity::nvlink: return "NV#";
        case Proximity::pix: return "PIX";
        case Proximity::pxb: return "PXB";
        case Proximity::phb: return "PHB";
        case Proximity::node: return "NODE";
        case Proximity::sys: return "SYS";
    }
    throw LogicError("unknown proximity");
}

std::string smi_cell(const Topology& topology, VertexId from, VertexId to) {
    const Route route = find_route(topology, from, to);
    if (route.proximity == Proximity::nvlink) return fmt::format("NV{}", route.nvlinks);
    return std::string(to_string(route.proximity));
}

std::vector<VertexId> smi_devices(const Topology& topology) {
    std::vector<VertexId> devices;
    for (const VertexKind kind : {VertexKind::gpu, VertexKind::nic})
        for (std::size_t i = 0; i < topology.vertices.size(); ++i)
            if (topology.vertices[i].kind == kind) devices.push_back({static_cast<std::int32_t>(i)});
    return devices;
}

std::string format_smi_matrix(const Topology& topology) {
    const std::vector<VertexId> devices = smi_devices(topology);
    fmt::memory_buffer text;
    const auto out = fmt::appender(text);
    for (const VertexId v : devices) fmt::format_to(out, "\t{}", smi_name(topology.vertices[v.index()]));
    fmt::format_to(out, "\tNUMA Affinity\n");
    for (const VertexId from : devices) {
        const Vertex& vertex = topology.vertices[from.index()];
        fmt::format_to(out, "{}", smi_name(vertex));
        for (const VertexId to : devices) fmt::format_to(out, "\t{}", smi_cell(topology, from, to));
        fmt::format_to(out, "\t{}\n", vertex.kind == VertexKind::gpu ? numa_text(vertex) : "");
    }
    fmt::format_to(out, "\n{}", legend);
    return fmt::to_string(text);
}

}  // namespace lockstep::machine
