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
#include "step/device_sample.hpp"

namespace lockstep::gpu {

/// The functions of the library.
struct NvmlLibrary;

class NvmlDevice {
public:
    /// Takes some tens of microseconds to a millisecond: not for the inside of a step. `time` is the caller's. `untold`
    /// gets "power: Not Supported" for each value that is not told.
    step::DeviceSample sample(std::vector<std::string>* untold = nullptr) const;
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
