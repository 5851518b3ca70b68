// Devices and machines as tables for the terminal and as JSON.
#pragma once

#include <string>
#include <vector>

#include "config/json.hpp"
#include "machine/machine.hpp"

namespace lockstep::report {

/// One line a device: dense peaks, memory, NVLink in one direction, price. At most 100 columns.
std::string format_device_list(const std::vector<machine::Device>& devices);

/// Everything known of a device, with notes, sources and the file. At most 100 columns.
std::string format_device(const machine::Device& device);

/// {"name", "title", "kind", "file", "peaks": [{"type", "tensor_core", "dense_flops", "sparse_flops"}],
/// "memory_bytes", "memory_bandwidth", "nvlink": {...}, "pcie": {...}, "price", "notes", "sources" ...}; rates are in
/// bytes or operations a second, one direction.
config::Json device_json(const machine::Device& device);
/// An array of device_json.
config::Json device_list_json(const std::vector<machine::Device>& devices);

/// One line a machine: nodes, devices, ring channels over the GPUs of a node, network. At most 100 columns.
std::string format_machine_list(const std::vector<machine::Machine>& machines);

/// The matrix as `nvidia-smi topo -m` prints it, links with rates, ring channels, network, calibration with sources.
/// At most 100 columns but for the matrix, which is as wide as nvidia-smi makes it.
std::string format_machine(const machine::Machine& machine);

/// {"name", "title", "file", "nodes", "devices_per_node", "device": {...}, "vertices": [...], "links": [...], "matrix":
/// {"names", "rows"}, "rings": {"channels", "per_channel", "total", "proximity"} or null on one GPU, "network",
/// "calibration", "notes", "sources"}.
config::Json machine_json(const machine::Machine& machine);
/// An array of machine_json.
config::Json machine_list_json(const std::vector<machine::Machine>& machines);

}  // namespace lockstep::report
