// The part of NVML's interface that is used here: types and numbers of its public, stable C interface (NVIDIA's "NVML
// API Reference Guide"). The library comes with the driver, and its header not with every CUDA toolkit.
#pragma once

namespace lockstep::gpu::nvml {

struct Device;  ///< nvmlDevice_t points to one

enum class Return : int {  // nvmlReturn_t
    success = 0,
    uninitialized = 1,
    invalid_argument = 2,
    not_supported = 3,
    no_permission = 4,
    not_found = 6,
    driver_not_loaded = 9,
    function_not_found = 13,
    gpu_is_lost = 15,
    unknown = 999,
};

enum class Clock : int { graphics = 0, sm = 1, memory = 2 };                       // nvmlClockType_t
enum class Sensor : int { gpu = 0 };                                               // nvmlTemperatureSensors_t
enum class Enable : int { disabled = 0, enabled = 1 };                             // nvmlEnableState_t
enum class LinkPeer : int { gpu = 0, ibm_npu = 1, nv_switch = 2, unknown = 255 };  // nvmlIntNvLinkDeviceType_t
inline constexpr unsigned most_links = 18;                                         // NVML_NVLINK_MAX_LINKS

struct Memory {  // nvmlMemory_t, bytes
    unsigned long long total, free, used;
};

struct PciInfo {  // nvmlPciInfo_t
    char bus_id_legacy[16];
    unsigned domain, bus, device;
    unsigned device_id, subsystem_id;
    char bus_id[32];
};

}  // namespace lockstep::gpu::nvml
