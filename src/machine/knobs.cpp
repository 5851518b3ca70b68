#include "machine/knobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "machine/field.hpp"
#include "machine/rings.hpp"
#include "machine/topology_check.hpp"

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

[[noreturn]] void refuse(std::string_view knob, const std::string& why) {
    throw InputError(fmt::format("knobs.{}: {}", knob, why));
}

std::optional<CollectiveAlgorithm> read_algorithm(Object& knobs) {
    const std::string text = knobs.choice_or("nccl_algo", {"ring", "tree", "nvls", "auto"}, "auto");
    for (const auto a : {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree, CollectiveAlgorithm::nvls})
        if (text == to_string(a)) return a;
    return std::nullopt;
}

std::optional<CollectiveProtocol> read_protocol(Object& knobs) {
    const std::string text = knobs.choice_or("nccl_proto", {"ll", "ll128", "simple", "auto"}, "auto");
    for (const auto p : {CollectiveProtocol::ll, CollectiveProtocol::ll128, CollectiveProtocol::simple})
        if (text == to_string(p)) return p;
    return std::nullopt;
}

std::optional<Watts> read_cap(Object& knobs) {
    if (!knobs.has("power_cap")) return std::nullopt;
    const std::size_t before = knobs.diagnostics().count();
    const Watts cap = knobs.watts_or("power_cap", Watts{0});
    if (!(cap.value > 0) && knobs.diagnostics().count() == before) knobs.error("power_cap", "must be above 0");
    return cap;
}

void read_rates(const Node& node, Knobs& knobs, Diagnostics& diagnostics) {
    Object rates(node, "link_rates", diagnostics);
    const auto read = [&](std::string_view key, std::optional<Bandwidth>& rate) {
        if (rates.has(key)) rate = positive(rates, key, &Object::bandwidth);
    };
    read("nvlink", knobs.nvlink);
    read("pcie", knobs.pcie);
    read("socket", knobs.socket);
    read("network", knobs.nic);
    rates.finish();
}

/// What differs between kinds of nodes, wherever it is kept.
struct KindView {
    Device& device;
    Topology& topology;
    std::vector<Bandwidth>& nics;
};

std::vector<KindView> views_of(Machine& machine) {
    std::vector<KindView> views{{machine.device, machine.node, machine.nics}};
    for (NodeKind& kind : machine.more_kinds) views.push_back({kind.device, kind.topology, kind.nics});
    return views;
}

void forbid_peer_access(const KindView& kind) {
    std::erase_if(kind.topology.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
    kind.topology.peer_access = PeerAccess::through_host;
    for (int b = 1; b < kind.topology.gpus(); ++b)
        if (!has_route(kind.topology, 0, b))
            refuse("peer_to_peer",
                   fmt::format("without it gpu0 can't reach gpu{} (no path by a CPU is described); add the PCIe "
                               "links to the machine file",
                               b));
}

void leave_nics(Machine& machine, int count) {
    if (!machine.network) refuse("nics_per_node", fmt::format("{} has no network", machine.name));
    for (int node = 0; node < machine.nodes; ++node) {
        const auto nics = machine.nics_of(node);
        if (static_cast<int>(nics.size()) < count)
            refuse("nics_per_node", fmt::format("{} wanted, and node {} of {} has {}; use 1 to {}", count, node,
                                                machine.name, nics.size(), nics.size()));
        const bool is_cut_off =
            std::ranges::none_of(nics.begin(), nics.begin() + count, [](Bandwidth rate) { return rate.value > 0; });
        if (is_cut_off && machine.nodes > 1)
            refuse("nics_per_node",
                   fmt::format("the first {} of node {} are missing, which leaves it without any", count, node));
        if (machine.kind_of_node.empty()) break;
    }
    machine.network->nics_per_node = count;
    for (const KindView& kind : views_of(machine))
        if (!kind.nics.empty()) kind.nics.resize(static_cast<std::size_t>(count));
}

void cap_power(Device& device, Watts cap) {
    if (!(device.power.value > 0))
        refuse("power_cap", fmt::format("the power of {} is not known; give power in its device file", device.name));
    if (cap > device.power)
        refuse("power_cap",
               fmt::format("{} is above the {} of {}", config::format(cap), config::format(device.power), device.name));
    const Watts least{least_cap_share * device.power.value};
    if (cap < least)
        refuse("power_cap", fmt::format("{} is below what {} can be limited to; use {} to {}", config::format(cap),
                                        device.name, config::format(least), config::format(device.power)));
    device.clock = clock_under_cap(cap, device.power);
}

void set_rate(Machine& machine, LinkKind kind, std::optional<Bandwidth> rate) {
    if (!rate) return;
    bool is_found = false;
    for (const KindView& view : views_of(machine)) {
        for (Link& link : view.topology.links) {
            if (link.kind != kind) continue;
            link.per_direction = link.left * static_cast<double>(link.count) * *rate;
            is_found = true;
        }
        if (kind == LinkKind::nvlink && view.device.nvlink.links > 0) view.device.nvlink.per_link = *rate;
        if (kind == LinkKind::pcie && view.device.pcie.lanes > 0) view.device.pcie.per_direction = *rate;
    }
    const std::string knob = fmt::format("link_rates.{}", to_string(kind));
    if (!is_found) refuse(knob, fmt::format("{} has no such link", machine.name));
}

void set_network_rate(Machine& machine, Bandwidth rate) {
    if (!machine.network) refuse("link_rates.network", fmt::format("{} has no network", machine.name));
    const double change = rate / machine.network->per_nic;
    machine.network->per_nic = rate;
    for (const KindView& kind : views_of(machine))
        for (Bandwidth& nic : kind.nics) nic = change * nic;
}

void require_offered(const Machine& machine) {
    const bool wants_nvls = machine.forced.algorithm == CollectiveAlgorithm::nvls;
    const bool wants_ll128 = machine.forced.protocol == CollectiveProtocol::ll128;
    if (wants_nvls && machine.forced.protocol && machine.forced.protocol != CollectiveProtocol::simple)
        refuse("nccl_proto", "NCCL runs nvls with the simple protocol only; leave nccl_proto out");
    for (const NodeKind& kind : kinds_of(machine)) {
        if (wants_nvls && !has_in_switch_reduction(kind.device, kind.topology))
            refuse("nccl_algo",
                   fmt::format("nvls needs NVSwitches that add up (compute capability 9.0 on), which the nodes with {} "
                               "haven't; use ring, tree or auto",
                               kind.device.name));
        if (!wants_ll128) continue;
        if (const int major = capability_major(kind.device); major > 0 && major < 7)
            refuse("nccl_proto", fmt::format("NCCL offers ll128 from compute capability 7.0 on, and {} has {}; use ll, "
                                             "simple or auto",
                                             kind.device.name, kind.device.compute_capability));
        const auto rings = rings_of_node(kind.topology);
        if (rings && rings->proximity != Proximity::nvlink)
            refuse("nccl_proto",
                   fmt::format("NCCL offers ll128 between GPUs that NVLink joins (PCIe may break its 128-byte stores), "
                               "and those of {} are not; use ll, simple or auto",
                               machine.name));
    }
}

}  // namespace

std::vector<std::string> Knobs::names() const {
    std::vector<std::string> names;
    const auto add = [&](bool is_set, const char* name) {
        if (is_set) names.emplace_back(name);
    };
    add(peer_to_peer.has_value(), "peer_to_peer");
    add(nics_per_node.has_value(), "nics_per_node");
    add(algorithm.has_value(), "nccl_algo");
    add(protocol.has_value(), "nccl_proto");
    add(power_cap.has_value(), "power_cap");
    add(nvlink.has_value(), "link_rates.nvlink");
    add(pcie.has_value(), "link_rates.pcie");
    add(socket.has_value(), "link_rates.socket");
    add(nic.has_value(), "link_rates.network");
    return names;
}

Knobs read_knobs(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "knobs", diagnostics);
    Knobs knobs;
    if (object.has("peer_to_peer")) knobs.peer_to_peer = object.flag_or("peer_to_peer", true);
    if (object.has("nics_per_node")) knobs.nics_per_node = static_cast<int>(object.integer("nics_per_node", 1, 64));
    knobs.algorithm = read_algorithm(object);
    knobs.protocol = read_protocol(object);
    knobs.power_cap = read_cap(object);
    if (const auto rates = object.node("link_rates")) read_rates(*rates, knobs, diagnostics);
    object.finish();
    return knobs;
}

double clock_under_cap(Watts cap, Watts power) {
    return std::cbrt((cap.value / power.value - idle_power_share) / (1 - idle_power_share));
}

bool has_in_switch_reduction(const Device& device, const Topology& topology) {
    if (capability_major(device) < 9) return false;
    for (int i = 0; i < topology.gpus(); ++i) {
        const VertexId gpu = topology.gpu(i);
        const auto links = topology.links_of(gpu);
        const bool is_on_switch = std::ranges::any_of(links, [&](LinkId id) {
            const VertexId end = other_end(topology.links[id.index()], gpu);
            return topology.vertices[end.index()].kind == VertexKind::nvswitch;
        });
        if (!is_on_switch) return false;
    }
    return topology.gpus() > 1;
}

Machine apply_knobs(Machine machine, const Knobs& knobs) {
    if (machine.device.kind == DeviceKind::cpu) {
        for (const std::string& name : knobs.names())
            if (!name.starts_with("link_rates"))
                refuse(name, fmt::format("is of GPUs, and {} trains on CPUs", machine.name));
    }
    set_rate(machine, LinkKind::nvlink, knobs.nvlink);
    set_rate(machine, LinkKind::pcie, knobs.pcie);
    set_rate(machine, LinkKind::socket, knobs.socket);
    if (knobs.nic) set_network_rate(machine, *knobs.nic);
    if (knobs.nics_per_node) leave_nics(machine, *knobs.nics_per_node);
    for (const KindView& kind : views_of(machine)) {
        if (knobs.power_cap) cap_power(kind.device, *knobs.power_cap);
        if (knobs.peer_to_peer == false) forbid_peer_access(kind);
    }
    machine.forced = {knobs.algorithm, knobs.protocol};
    require_offered(machine);
    return machine;
}

}  // namespace lockstep::machine
