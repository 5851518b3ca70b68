#include "config/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.hpp"

namespace lockstep::config {

namespace {

struct NumberAndUnit {
    double number = 0;
    std::string_view unit;
};

/// "25 MiB" as {25, "MiB"}; none when it doesn't start with a finite number.
std::optional<NumberAndUnit> split(std::string_view text) {
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    if (text.starts_with('+')) text.remove_prefix(1);
    NumberAndUnit result;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), result.number);
    if (failure != std::errc{} || !std::isfinite(result.number)) return std::nullopt;
    result.unit = text.substr(static_cast<std::size_t>(end - text.data()));
    while (!result.unit.empty() && is_space(result.unit.front())) result.unit.remove_prefix(1);
    return result;
}

/// What the word before the base unit multiplies by; none when it is no prefix.
std::optional<double> prefix_factor(std::string_view prefix) {
    if (prefix.empty()) return 1.0;
    constexpr std::string_view letters = "kMGTPE";
    const auto power = letters.find(prefix.front() == 'K' ? 'k' : prefix.front());
    if (power == std::string_view::npos) return std::nullopt;
    const auto exponent = static_cast<double>(power + 1);
    if (prefix.size() == 1) return std::pow(1000.0, exponent);
    if (prefix.size() == 2 && prefix[1] == 'i') return std::exp2(10 * exponent);
    return std::nullopt;
}

/// The factor of a unit that is a prefix before one of `endings`.
std::optional<double> factor_before(std::string_view unit, std::initializer_list<std::string_view> endings) {
    for (const auto ending : endings)
        if (unit.ends_with(ending))
            if (const auto factor = prefix_factor(unit.substr(0, unit.size() - ending.size()))) return factor;
    return std::nullopt;
}

std::optional<double> bytes_factor(std::string_view unit) { return factor_before(unit, {"B"}); }

std::optional<double> seconds_factor(std::string_view unit) {
    constexpr std::pair<std::string_view, double> units[] = {
        {"s", 1},     {"ms", 1e-3},  {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6},
        {"ns", 1e-9}, {"ps", 1e-12}, {"min", 60},  {"h", 3600},       {"d", 86400}};
    for (const auto& [name, factor] : units)
        if (unit == name) return factor;
    return std::nullopt;
}

std::optional<double> bandwidth_factor(std::string_view unit) {
    if (const auto factor = factor_before(unit, {"B/s", "Bps"})) return factor;
    if (const auto factor = factor_before(unit, {"bit/s", "b/s", "bps"})) return *factor / 8;
    return std::nullopt;
}

std::optional<double> flop_rate_factor(std::string_view unit) {
    return factor_before(unit, {"FLOPS", "FLOPs", "Flops", "flops", "FLOP/s", "Flop/s", "flop/s", "OPS", "OP/s"});
}

std::optional<double> watts_factor(std::string_view unit) { return factor_before(unit, {"W"}); }

/// What a parser accepts, as its message says it.
struct Wanted {
    std::string_view what, units, example;
    std::optional<double> (*factor)(std::string_view unit);
};

constexpr Wanted a_size{"a size", "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB", "25 MiB", bytes_factor};
constexpr Wanted a_time{"a time", "s, ms, us, ns, ps, min, h, d", "3 us", seconds_factor};
constexpr Wanted a_bandwidth{"a bandwidth", "B/s, MB/s, GB/s, GiB/s, TB/s; Mb/s, Gb/s are bits", "25 GB/s",
                             bandwidth_factor};
constexpr Wanted a_rate{"a rate of operations", "GFLOPS, TFLOPS, PFLOPS, TFLOP/s, TOPS", "312 TFLOPS",
                        flop_rate_factor};
constexpr Wanted a_power{"a power", "W, kW, MW", "400 W", watts_factor};

/// Why a unit that people do write is not taken.
std::string_view refusal(std::string_view unit) {
    if (unit.ends_with("T/s"))
        return "; transfers per second say nothing without width and coding, write the link's GB/s";
    if (unit.ends_with("b") || unit.ends_with("bit")) return "; a size is in bytes (B), b is bit";
    if (unit.ends_with("FLOP") || unit.ends_with("FLOp")) return "; a rate is per second, write FLOPS or FLOP/s";
    return "";
}

double parse(std::string_view text, const Wanted& wanted) {
    const auto parts = split(text);
    if (parts && parts->number >= 0) {
        if (parts->unit.empty() && parts->number == 0) return 0;
        if (const auto factor = wanted.factor(parts->unit); factor && std::isfinite(parts->number * *factor))
            return parts->number * *factor;
    }
    constexpr std::size_t longest = 40;
    const std::string_view tail = text.size() > longest ? "..." : "";
    throw InputError(fmt::format("wants {} such as '{}' (units: {}), got '{}{}'{}{}", wanted.what, wanted.example,
                                 wanted.units, text.substr(0, longest), tail,
                                 parts && parts->number < 0 ? ", which is negative" : "",
                                 parts ? refusal(parts->unit) : ""));
}

}  // namespace

Bytes parse_bytes(std::string_view text) { return Bytes{parse(text, a_size)}; }
Seconds parse_seconds(std::string_view text) { return Seconds{parse(text, a_time)}; }
Bandwidth parse_bandwidth(std::string_view text) { return Bandwidth{parse(text, a_bandwidth)}; }
FlopRate parse_flop_rate(std::string_view text) { return FlopRate{parse(text, a_rate)}; }
Watts parse_watts(std::string_view text) { return Watts{parse(text, a_power)}; }

}  // namespace lockstep::config
