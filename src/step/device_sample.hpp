// The state of the device that a rank computes on, at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "base/units.hpp"

namespace lockstep::step {

/// Why a device's clocks are below their largest; bits as NVML numbers them.
enum class ThrottleReason : std::uint64_t {
    idle = 0x1,
    application_clocks = 0x2,  ///< someone set them
    power_cap = 0x4,
    hardware_slowdown = 0x8,  ///< too hot, or the power supply asks for it
    sync_boost = 0x10,        ///< as slow as another device of its group
    thermal = 0x20,
    hardware_thermal = 0x40,
    power_brake = 0x80,  ///< the power supply asks for it
    display_clocks = 0x100,
};

struct ThrottleReasons {
    std::uint64_t bits = 0;
    constexpr bool has(ThrottleReason reason) const { return (bits & static_cast<std::uint64_t>(reason)) != 0; }
    constexpr bool operator==(const ThrottleReasons&) const = default;
    /// Those that make a device at work slower than it would be: power and heat.
    constexpr ThrottleReasons of_power_and_heat() const { return {bits & 0xecU}; }
};
/// "power cap, thermal slowdown", or "none".
std::string to_string(ThrottleReasons reasons);

/// What a device doesn't tell is not there. Of a part of a GPU (MIG): the whole GPU's.
struct DeviceSample {
    Nanoseconds time;  ///< when it was taken, counted as spans are
    std::optional<Frequency> sm_clock, memory_clock;
    std::optional<Watts> power, power_limit;
    std::optional<int> temperature;  ///< degrees Celsius
    std::optional<ThrottleReasons> throttle;

    bool operator==(const DeviceSample&) const = default;
};

}  // namespace lockstep::step
