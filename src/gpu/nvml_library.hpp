// The functions of NVML, looked up in the library at run time.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "gpu/nvml_types.hpp"

namespace lockstep::gpu {

/// A function that the installed driver does not have is null.
struct NvmlLibrary {
    /// Loads it. Throws nothing; absent() says why it can't be used.
    NvmlLibrary();
    ~NvmlLibrary();
    NvmlLibrary(const NvmlLibrary&) = delete;
    NvmlLibrary& operator=(const NvmlLibrary&) = delete;

    const std::string& absent() const { return absent_; }
    std::string text(nvml::Return result) const;

    nvml::Return (*init)() = nullptr;
    nvml::Return (*shutdown)() = nullptr;
    const char* (*error_string)(nvml::Return) = nullptr;
    nvml::Return (*driver_version)(char*, unsigned) = nullptr;
    nvml::Return (*by_pci)(const char*, nvml::Device**) = nullptr;
    nvml::Return (*clock)(nvml::Device*, nvml::Clock, unsigned*) = nullptr;
    nvml::Return (*most_clock)(nvml::Device*, nvml::Clock, unsigned*) = nullptr;
    nvml::Return (*power)(nvml::Device*, unsigned*) = nullptr;
    nvml::Return (*power_limit)(nvml::Device*, unsigned*) = nullptr;
    nvml::Return (*temperature)(nvml::Device*, nvml::Sensor, unsigned*) = nullptr;
    nvml::Return (*reasons)(nvml::Device*, unsigned long long*) = nullptr;
    nvml::Return (*pcie_generation)(nvml::Device*, unsigned*) = nullptr;
    nvml::Return (*pcie_lanes)(nvml::Device*, unsigned*) = nullptr;
    nvml::Return (*most_pcie_generation)(nvml::Device*, unsigned*) = nullptr;
    nvml::Return (*most_pcie_lanes)(nvml::Device*, unsigned*) = nullptr;
    nvml::Return (*link_state)(nvml::Device*, unsigned, nvml::Enable*) = nullptr;
    nvml::Return (*link_peer)(nvml::Device*, unsigned, nvml::LinkPeer*) = nullptr;
    nvml::Return (*link_pci)(nvml::Device*, unsigned, nvml::PciInfo*) = nullptr;
    nvml::Return (*memory)(nvml::Device*, nvml::Memory*) = nullptr;
    nvml::Return (*mig_mode)(nvml::Device*, unsigned*, unsigned*) = nullptr;

private:
    struct Unload {
        void operator()(void* library) const { dlclose(library); }
    };
    std::unique_ptr<void, Unload> library_;
    bool initialised_ = false;
    std::string absent_;

    void find_functions();
};

}  // namespace lockstep::gpu
