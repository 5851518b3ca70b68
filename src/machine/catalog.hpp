// Devices and machines by name, from the data folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/data_path.hpp"
#include "machine/machine.hpp"

namespace lockstep::machine {

Device load_device(const config::DataPath& data, std::string_view name_or_path);

/// The name under which the machine that this program runs on is asked for.
inline constexpr std::string_view host_name = "host";

/// A machine by name or path, or `host`: this machine with the rates that were kept when it was last measured. Throws
/// InputError when they are absent, naming `lockstep machine detect`.
Machine load_machine(const config::DataPath& data, std::string_view name_or_path);

/// As written in an experiment: a name, a path, or a cluster (cluster_form.hpp). Errors go to `diagnostics`;
/// the result is then not to be used.
Machine load_machine(const config::DataPath& data, const config::Node& node, config::Diagnostics& diagnostics);

std::vector<std::string> device_names(const config::DataPath& data);
std::vector<std::string> machine_names(const config::DataPath& data);

}  // namespace lockstep::machine
