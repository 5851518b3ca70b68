// Clocks, power, temperature and links of GPUs, from NVML: the library of the driver that nvidia-smi uses. It is loaded
// at run time; without it, or where a GPU doesn't tell something, there is a reason instead of a value, never an error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "gpu/links.hpp"
#include "gpu/nvml_types.hpp"

namespace lockstep::gpu {

/// The state of a GPU at one moment.
struct DeviceSample {
    std::optional<Frequency> sm_clock, memory_clock;
    std::optional<Watts> power, power_limit;
    std::optional<int> temperature;  ///< degrees Celsius
    /// Why the clocks are not the largest: "power cap", "thermal slowdown" ...; an empty list: for no reason.
    std::optional<std::vector<std::string>> throttle;
    std::vector<std::string> missing;  ///< "power: Not Supported", one for each value that is not told
};

/// The functions of the library.
struct NvmlLibrary;

class NvmlDevice {
public:
    /// Takes some tens of microseconds to a millisecond: not for the inside of a step.
    DeviceSample sample() const;
    std::optional<Frequency> most_sm_clock() const;
    std::optional<PcieLink> pcie() const;
    std::vector<NvLinkPeer> nv_links() const;
    std::optional<Bytes> free_memory() const;
    /// Whether the GPU is divided into instances; what a program sees of it is then one of them.
    bool has_mig_instances() const;

private:
    friend class Nvml;
    NvmlDevice(std::shared_ptr<const NvmlLibrary> library, nvml::Device* device)
        : library_(std::move(library)), device_(device) {}
    std::shared_ptr<const NvmlLibrary> library_;
    nvml::Device* device_;
};

class Nvml {
public:
    /// Loads and initialises the library; see absent().
    Nvml();
    /// Why there is no NVML; empty when there is.
    const std::string& absent() const;
    std::optional<std::string> driver_version() const;
    /// A GPU by "0000:3b:00.0"; an instance's GPU as a whole. None: `why` says what NVML said.
    std::optional<NvmlDevice> device(const std::string& pci_bus_id, std::string& why) const;

private:
    std::shared_ptr<const NvmlLibrary> library_;
};

}  // namespace lockstep::gpu
