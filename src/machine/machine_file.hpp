// A machine document: one node with its device and links, or a cluster of nodes that another file describes.
#pragma once

#include <optional>

#include "config/data_path.hpp"
#include "config/document.hpp"
#include "machine/machine.hpp"

namespace lockstep::machine {

/// What `load` returns, or an error at `where` when it throws, so that the other errors of the file are still found.
template <class Load>
auto at_place(const config::Location& where, config::Diagnostics& diagnostics, Load load)
    -> std::optional<decltype(load())> {
    try {
        return load();
    } catch (const InputError& error) {
        diagnostics.error(where, error.what());
        return std::nullopt;
    }
}

/// The set of constants that the device names, else the one with its own name, else the default constants (whose source
/// says so). Throws InputError when it can't be read.
Calibration calibration_of(const config::DataPath& data, const Device& device);

/// A node (title, device, vertices, links ...; see topology_file.hpp; device: a name, or a device document in place;
/// calibration: a name, or {constants, source} that
/// replace some of the device's) or a cluster (see cluster_form.hpp), each with faults (see faults.hpp). All errors go
/// to `diagnostics`, and the result is then not to be used. The caller sets name and file.
Machine read_machine(const config::DataPath& data, const config::Node& node, config::Diagnostics& diagnostics);

}  // namespace lockstep::machine
