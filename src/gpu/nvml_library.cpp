#include "gpu/nvml_library.hpp"

#include <fmt/format.h>

namespace lockstep::gpu {

NvmlLibrary::NvmlLibrary() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) {
        const char* why = dlerror();
        absent_ = fmt::format("no NVML (libnvidia-ml.so.1 of the driver): {}", why ? why : "");
        return;
    }
    find_functions();
    const nvml::Return result = init && shutdown ? init() : nvml::Return::function_not_found;
    initialised_ = result == nvml::Return::success;
    if (!initialised_) absent_ = "NVML does not start: " + text(result);
}

NvmlLibrary::~NvmlLibrary() {
    if (initialised_) shutdown();
}

std::string NvmlLibrary::text(nvml::Return result) const {
    const char* text = error_string ? error_string(result) : nullptr;
    return text ? text : fmt::format("error {}", static_cast<int>(result));
}

void NvmlLibrary::find_functions() {
    const auto find = [&]<class F>(F*& function, const char* name) {
        function = reinterpret_cast<F*>(dlsym(library_.get(), name));
    };
    find(init, "nvmlInit_v2");
    find(shutdown, "nvmlShutdown");
    find(error_string, "nvmlErrorString");
    find(driver_version, "nvmlSystemGetDriverVersion");
    find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    find(clock, "nvmlDeviceGetClockInfo");
    find(most_clock, "nvmlDeviceGetMaxClockInfo");
    find(power, "nvmlDeviceGetPowerUsage");
    find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    find(temperature, "nvmlDeviceGetTemperature");
    find(reasons, "nvmlDeviceGetCurrentClocksEventReasons");
    if (!reasons) find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its name before driver 535
    find(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    find(pcie_lanes, "nvmlDeviceGetCurrPcieLinkWidth");
    find(most_pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(most_pcie_lanes, "nvmlDeviceGetMaxPcieLinkWidth");
    find(link_state, "nvmlDeviceGetNvLinkState");
    find(link_peer, "nvmlDeviceGetNvLinkRemoteDeviceType");
    find(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(mig_mode, "nvmlDeviceGetMigMode");
}

}  // namespace lockstep::gpu
