// NVML's interface, of the same GPUs as the runtime's double.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "gpu/nvml_types.hpp"
#include "gpu_double/control.hpp"
#include "gpu_double/runtime/device_set.hpp"

namespace lockstep::gpu_double {
namespace {

using gpu::nvml::Return;

std::atomic<int> initialised = 0;  // of any thread

constexpr unsigned links_to_each = 4;  // while they suffice; else all go to switches

// A handle is the device's number and one.
int number_of(const gpu::nvml::Device* device) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

template <class Body>
Return api(const char* function, Body body) {
    const Fate fate = double_call(function);
    while (fate.hangs) std::this_thread::sleep_for(std::chrono::hours(1));
    if (fate.fails) return static_cast<Return>(fate.code_or(static_cast<int>(Return::unknown)));
    if (initialised == 0) {
        report_misuse(fmt::format("{} before nvmlInit_v2", function));
        return Return::uninitialized;
    }
    return body();
}

// A call about one device that sets one value.
template <class T>
Return tell(const char* function, const gpu::nvml::Device* device, T* result, T value) {
    return api(function, [&] {
        if (number_of(device) < 0 || number_of(device) >= controls()->devices) {
            report_misuse(fmt::format("{}: no such device", function));
            return Return::invalid_argument;
        }
        *result = value;
        return Return::success;
    });
}

bool has_switches() { return (controls()->devices - 1) * static_cast<int>(links_to_each) > 18; }

// Number of the device at a link's other end; -1: there is none, or a switch.
int peer_of(const gpu::nvml::Device* device, unsigned link) {
    const int peer = static_cast<int>(link / links_to_each);  // among the others
    if (has_switches() || peer >= controls()->devices - 1) return -1;
    return peer < number_of(device) ? peer : peer + 1;
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;
using lockstep::gpu::nvml::Clock, lockstep::gpu::nvml::Enable, lockstep::gpu::nvml::LinkPeer,
    lockstep::gpu::nvml::Memory, lockstep::gpu::nvml::PciInfo, lockstep::gpu::nvml::Sensor;
using DeviceHandle = lockstep::gpu::nvml::Device*;

extern "C" {

Return nvmlInit_v2() {
    if (controls()->driver == 0) return Return::driver_not_loaded;
    ++initialised;
    return Return::success;
}
Return nvmlShutdown() {
    if (initialised == 0) return Return::uninitialized;
    --initialised;
    return Return::success;
}
const char* nvmlErrorString(Return result) {
    switch (result) {
        case Return::success: return "Success";
        case Return::uninitialized: return "Uninitialized";
        case Return::invalid_argument: return "Invalid Argument";
        case Return::not_supported: return "Not Supported";
        case Return::not_found: return "Not Found";
        case Return::driver_not_loaded: return "Driver Not Loaded";
        case Return::gpu_is_lost: return "GPU is lost";
        default: return "Unknown Error";
    }
}
Return nvmlSystemGetDriverVersion(char* text, unsigned length) {
    return api("nvmlSystemGetDriverVersion", [&] {
        std::snprintf(text, length, "580.0 (test double)");
        return Return::success;
    });
}

Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, DeviceHandle* device) {
    return api("nvmlDeviceGetHandleByPciBusId_v2", [&] {
        std::string wanted = id;
        std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return std::toupper(c); });
        const auto all = all_devices();
        for (const Device& d : *all)
            if (wanted == pci_bus_id(d)) {
                *device = reinterpret_cast<DeviceHandle>(static_cast<std::uintptr_t>(d.number) + 1);
                return Return::success;
            }
        return Return::not_found;
    });
}

Return nvmlDeviceGetClockInfo(DeviceHandle device, Clock clock, unsigned* mhz) {
    return tell("nvmlDeviceGetClockInfo", device, mhz, clock == Clock::memory ? 2619U : 1755U);
}
Return nvmlDeviceGetMaxClockInfo(DeviceHandle device, Clock clock, unsigned* mhz) {
    return tell("nvmlDeviceGetMaxClockInfo", device, mhz, clock == Clock::memory ? 2619U : 1980U);
}
Return nvmlDeviceGetPowerUsage(DeviceHandle device, unsigned* milliwatts) {
    return tell("nvmlDeviceGetPowerUsage", device, milliwatts, 412500U);
}
Return nvmlDeviceGetEnforcedPowerLimit(DeviceHandle device, unsigned* milliwatts) {
    return tell("nvmlDeviceGetEnforcedPowerLimit", device, milliwatts, 700000U);
}
Return nvmlDeviceGetTemperature(DeviceHandle device, Sensor, unsigned* celsius) {
    return tell("nvmlDeviceGetTemperature", device, celsius, 50U + static_cast<unsigned>(number_of(device)));
}
Return nvmlDeviceGetCurrentClocksEventReasons(DeviceHandle device, unsigned long long* reasons) {
    return tell("nvmlDeviceGetCurrentClocksEventReasons", device, reasons, controls()->throttle);
}
Return nvmlDeviceGetCurrPcieLinkGeneration(DeviceHandle device, unsigned* generation) {
    return tell("nvmlDeviceGetCurrPcieLinkGeneration", device, generation, 4U);
}
Return nvmlDeviceGetMaxPcieLinkGeneration(DeviceHandle device, unsigned* generation) {
    return tell("nvmlDeviceGetMaxPcieLinkGeneration", device, generation, 5U);
}
Return nvmlDeviceGetCurrPcieLinkWidth(DeviceHandle device, unsigned* lanes) {
    return tell("nvmlDeviceGetCurrPcieLinkWidth", device, lanes, 16U);
}
Return nvmlDeviceGetMaxPcieLinkWidth(DeviceHandle device, unsigned* lanes) {
    return tell("nvmlDeviceGetMaxPcieLinkWidth", device, lanes, 16U);
}
// Of the whole machine's programs; here of none.
Return nvmlDeviceGetMemoryInfo(DeviceHandle device, Memory* memory) {
    const unsigned long long total = controls()->memory;
    return tell("nvmlDeviceGetMemoryInfo", device, memory, Memory{total, total, 0});
}
Return nvmlDeviceGetMigMode(DeviceHandle device, unsigned* current, unsigned* pending) {
    *pending = controls()->mig ? 1 : 0;
    return tell("nvmlDeviceGetMigMode", device, current, controls()->mig ? 1U : 0U);
}

Return nvmlDeviceGetNvLinkState(DeviceHandle device, unsigned link, Enable* state) {
    const bool linked = has_switches() || peer_of(device, link) >= 0;
    return tell("nvmlDeviceGetNvLinkState", device, state, linked ? Enable::enabled : Enable::disabled);
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(DeviceHandle device, unsigned link, LinkPeer* peer) {
    const bool to_gpu = peer_of(device, link) >= 0;
    return tell("nvmlDeviceGetNvLinkRemoteDeviceType", device, peer, to_gpu ? LinkPeer::gpu : LinkPeer::nv_switch);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(DeviceHandle device, unsigned link, PciInfo* pci) {
    const int peer = peer_of(device, link);
    if (peer < 0) return Return::not_supported;
    PciInfo info{};
    const std::string id = "0000" + pci_bus_id(all_devices()->at(static_cast<std::size_t>(peer)));
    std::memcpy(info.bus_id, id.c_str(), id.size() + 1);
    return tell("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, pci, info);
}
}
