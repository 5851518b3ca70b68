// A device: one GPU (or the share of a CPU host that one rank gets) as its data sheet and its sources describe it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "config/document.hpp"

namespace lockstep::machine {

enum class DeviceKind { gpu, cpu };

struct PeakRate {
    MathType type = MathType::fp32;
    FlopRate dense;
    std::optional<FlopRate> sparse;  ///< with 2:4 structured sparsity, where the vendor gives one
    bool tensor_core = false;
};

struct NvLink {
    int generation = 0;
    int links = 0;       ///< 0: no NVLink
    Bandwidth per_link;  ///< one direction
};

struct Pcie {
    int generation = 0;
    int lanes = 0;
    Bandwidth per_direction;  ///< of the whole link, after encoding
};

struct Price {
    UsdPerHour per_hour;
    std::string date;  ///< ISO date of the price
    std::string source;
};

struct Device {
    std::string name;
    std::string title;  ///< as people say it: "NVIDIA A100-SXM4-40GB"
    DeviceKind kind = DeviceKind::gpu;
    std::vector<std::string> driver_names;  ///< what the vendor's driver calls it: "NVIDIA A100-SXM4-40GB"
    std::string architecture;               ///< "Ampere"
    std::string compute_capability;         ///< "8.0"; empty for a CPU
    std::vector<PeakRate> peaks;
    Bytes memory;
    Bandwidth memory_bandwidth;
    Bytes l2;
    int sms = 0;  ///< streaming multiprocessors; cores of a CPU
    int fp32_cores_per_sm = 0;
    int fp64_cores_per_sm = 0;
    int tensor_cores_per_sm = 0;
    NvLink nvlink;
    Pcie pcie;
    Watts power;
    double clock = 1;  ///< its compute clock over the one the peaks are of; below 1 under a power cap
    std::optional<Price> price;
    std::string calibration;  ///< a name in topology/calibration/; empty: the device's own name is looked up there
    std::vector<std::string> sources;
    std::vector<std::string> notes;  ///< widely copied wrong figures and what is right
    std::filesystem::path file;

    /// Dense peak of a math type; nothing when the device has no units for it.
    std::optional<FlopRate> peak(MathType type) const;
};

/// 9 of compute capability "9.0"; 0 where it isn't told.
int capability_major(const Device& device);

/// Reads a device document; all errors go to `diagnostics`.
Device read_device(const config::Node& node, config::Diagnostics& diagnostics);

}  // namespace lockstep::machine
