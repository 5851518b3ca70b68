#include "step/device_sample.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace lockstep::step {

std::string to_string(ThrottleReasons reasons) {
    using enum ThrottleReason;
    static constexpr std::array<std::pair<ThrottleReason, const char*>, 9> names{{
        {idle, "idle"},
        {application_clocks, "application clocks"},
        {power_cap, "power cap"},
        {hardware_slowdown, "hardware slowdown"},
        {sync_boost, "sync boost"},
        {thermal, "thermal slowdown"},
        {hardware_thermal, "hardware thermal slowdown"},
        {power_brake, "power brake"},
        {display_clocks, "display clocks"},
    }};
    std::string text;
    const auto add = [&](const std::string& name) { text += (text.empty() ? "" : ", ") + name; };
    for (const auto& [reason, name] : names)
        if (reasons.has(reason)) add(name);
    const std::uint64_t others = reasons.bits & ~std::uint64_t{0x1ff};
    if (others != 0) add(fmt::format("reason {:#x}", others));
    return text.empty() ? "none" : text;
}

}  // namespace lockstep::step
