#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "config/quantity.hpp"

namespace lockstep::config {

namespace {

struct Unit {
    double factor;
    std::string_view name;
};

/// 3 significant digits without trailing zeros; digits before the point are never dropped (1023 stays 1023).
std::string three_digits(double value) {
    if (value == 0) return "0";
    const int before_point = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
    std::string text = fmt::format("{:.{}f}", value, std::max(0, 3 - before_point));
    if (text.find('.') != std::string::npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.') text.pop_back();
    }
    return text;
}

/// The value in the largest of `units` (ascending) in which it is at least 1 after rounding.
std::string in_units(double value, std::span<const Unit> units) {
    if (!std::isfinite(value)) return fmt::format("{} {}", value, units.front().name);
    std::string text = three_digits(value / units.front().factor);
    std::string_view name = units.front().name;
    for (const Unit& unit : units.subspan(1)) {
        const std::string next = three_digits(value / unit.factor);
        if (std::abs(std::stod(next)) < 1) break;
        text = next;
        name = unit.name;
    }
    return text + " " + std::string(name);
}

constexpr std::array<Unit, 6> byte_units{{{1, "B"},
                                          {1024.0, "KiB"},
                                          {1048576.0, "MiB"},
                                          {1073741824.0, "GiB"},
                                          {1099511627776.0, "TiB"},
                                          {1125899906842624.0, "PiB"}}};
constexpr std::array<Unit, 6> bandwidth_units{
    {{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}}};
constexpr std::array<Unit, 7> rate_units{{{1, "FLOP/s"},
                                          {1e3, "kFLOP/s"},
                                          {1e6, "MFLOP/s"},
                                          {1e9, "GFLOP/s"},
                                          {1e12, "TFLOP/s"},
                                          {1e15, "PFLOP/s"},
                                          {1e18, "EFLOP/s"}}};
constexpr std::array<Unit, 9> flop_units{{{1, "FLOP"},
                                          {1e3, "kFLOP"},
                                          {1e6, "MFLOP"},
                                          {1e9, "GFLOP"},
                                          {1e12, "TFLOP"},
                                          {1e15, "PFLOP"},
                                          {1e18, "EFLOP"},
                                          {1e21, "ZFLOP"},
                                          {1e24, "YFLOP"}}};
constexpr std::array<Unit, 5> second_units{{{1e-12, "ps"}, {1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}}};
constexpr std::array<Unit, 3> long_time_units{{{1, "s"}, {60, "min"}, {3600, "h"}}};
constexpr std::array<Unit, 3> watt_units{{{1, "W"}, {1e3, "kW"}, {1e6, "MW"}}};

}  // namespace

std::string format(Bytes bytes) { return in_units(bytes.value, byte_units); }
std::string format(Bandwidth bandwidth) { return in_units(bandwidth.value, bandwidth_units); }
std::string format(FlopRate rate) { return in_units(rate.value, rate_units); }
std::string format(Flops flops) { return in_units(flops.value, flop_units); }
std::string format(Watts watts) { return in_units(watts.value, watt_units); }

std::string format(Seconds seconds) {
    if (seconds.value == 0) return "0 s";
    if (std::abs(seconds.value) < 120) return in_units(seconds.value, second_units);
    return in_units(seconds.value, long_time_units);
}

std::string format_count(long long count) {
    const std::string digits = fmt::format("{}", count);
    const std::size_t sign = count < 0 ? 1 : 0;
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

}  // namespace lockstep::config
