#include "machine/catalog.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "machine/host_probe.hpp"
#include "machine/machine_file.hpp"

namespace lockstep::machine {

namespace {

using config::DataPath;
using config::Diagnostics;
using config::Node;

constexpr std::string_view device_folder = "topology/devices";
constexpr std::string_view machine_folder = "topology/machines";

Machine load_host() {
    const HostStructure structure = read_host_structure();
    const auto file = host_rates_file(structure);
    const auto rates = read_host_rates(file);
    if (!rates)
        throw InputError(
            fmt::format("the rates of this host are not known ({} is not there); run `lockstep machine "
                        "detect`, which measures them in about 2 seconds",
                        file.string()));
    Machine machine = make_host_machine(structure, *rates, host_ranks(structure, *rates));
    machine.file = file;
    return machine;
}

}  // namespace

Device load_device(const DataPath& data, std::string_view name_or_path) {
    const auto file = data.find("device", device_folder, name_or_path);
    Diagnostics diagnostics;
    Device device = read_device(config::parse_file(file), diagnostics);
    diagnostics.throw_if_any();
    device.name = file.stem().string();
    device.file = file;
    return device;
}

Machine load_machine(const DataPath& data, std::string_view name_or_path) {
    if (name_or_path == host_name) return load_host();
    const auto file = data.find("machine", machine_folder, name_or_path);
    Diagnostics diagnostics;
    Machine machine = read_machine(data, config::parse_file(file), diagnostics);
    diagnostics.throw_if_any();
    machine.name = file.stem().string();
    machine.file = file;
    return machine;
}

Machine load_machine(const DataPath& data, const Node& node, Diagnostics& diagnostics) {
    if (node.is_mapping()) return read_machine(data, node, diagnostics);
    if (!node.is_scalar() || node.text().empty()) {
        diagnostics.error(node.where(), "machine: wants a name, a path or {node: NAME, count: N, network: NAME}");
        return {};
    }
    return at_place(node.where(), diagnostics, [&] { return load_machine(data, node.text()); }).value_or(Machine{});
}

std::vector<std::string> device_names(const DataPath& data) { return data.names(device_folder); }

std::vector<std::string> machine_names(const DataPath& data) { return data.names(machine_folder); }

}  // namespace lockstep::machine
