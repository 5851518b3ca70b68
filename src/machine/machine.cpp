#include "machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::machine {

Placement Machine::place(int ranks) const {
    if (ranks < 1)
        throw InputError(fmt::format("{} ranks on {} (at least 1 is needed); use 1 to {}", ranks, name, devices()));
    if (ranks > devices())
        throw InputError(
            fmt::format("{} ranks do not fit {} ({} of {} = {}); use at most {} ranks, or a machine "
                        "{{node: NAME, count: {}, network: NAME}}",
                        ranks, name, nodes == 1 ? "1 node" : fmt::format("{} nodes", nodes),
                        devices_per_node() == 1 ? "1 device" : fmt::format("{} devices", devices_per_node()), devices(),
                        devices(), (ranks + devices_per_node() - 1) / devices_per_node()));
    return {ranks, std::min(ranks, devices_per_node())};
}

int Machine::first_of_kind(int kind) const {
    if (kind == 0) return 0;
    const auto first = std::ranges::find(kind_of_node, kind);
    if (first == kind_of_node.end()) throw LogicError(fmt::format("no node is of kind {}", kind));
    return static_cast<int>(first - kind_of_node.begin());
}

const Device& Machine::smallest_device(const Placement& placement) const {
    const Device* smallest = &device;
    for (int n = 0; n < placement.nodes(); ++n)
        if (device_of(n).memory < smallest->memory) smallest = &device_of(n);
    return *smallest;
}

std::vector<Bandwidth> Machine::nics_of(int of) const {
    if (!network) return {};
    const int kind = kind_of(of);
    const std::vector<Bandwidth>& own = kind == 0 ? nics : more(kind).nics;
    if (!own.empty()) return own;
    const int count = network->nics_per_node > 0 ? network->nics_per_node : topology_of(of).nics();
    return std::vector<Bandwidth>(static_cast<std::size_t>(count), network->per_nic);
}

std::vector<NodeKind> kinds_of(const Machine& machine) {
    std::vector<NodeKind> kinds{{machine.device, machine.node, machine.calibration, machine.nics}};
    kinds.insert(kinds.end(), machine.more_kinds.begin(), machine.more_kinds.end());
    return kinds;
}

void set_kinds(Machine& machine, const std::vector<NodeKind>& kinds, const std::vector<int>& of_node) {
    std::vector<int> number(kinds.size(), -1);
    int next = 0;
    std::vector<int> renumbered;
    std::vector<NodeKind> used;
    for (const int kind : of_node) {
        int& n = number[static_cast<std::size_t>(kind)];
        if (n < 0) {
            n = next++;
            used.push_back(kinds[static_cast<std::size_t>(kind)]);
        }
        renumbered.push_back(n);
    }
    if (used.empty()) throw LogicError("a machine of no nodes");
    machine.device = used.front().device;
    machine.node = used.front().topology;
    machine.calibration = used.front().calibration;
    machine.nics = used.front().nics;
    machine.more_kinds.assign(used.begin() + 1, used.end());
    machine.nodes = static_cast<int>(of_node.size());
    machine.kind_of_node = machine.more_kinds.empty() ? std::vector<int>{} : std::move(renumbered);
}

}  // namespace lockstep::machine
