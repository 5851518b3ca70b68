// Times of records (integer nanoseconds since the run's epoch) and of the simulator (integer picoseconds).
#pragma once

#include <compare>
#include <cstdint>

#include "base/units.hpp"

namespace lockstep {

/// A point in time or a duration in nanoseconds; points count from the epoch of the run they belong to.
struct Nanoseconds {
    std::int64_t count = 0;
    constexpr auto operator<=>(const Nanoseconds&) const = default;
    constexpr Nanoseconds operator+(Nanoseconds o) const { return {count + o.count}; }
    constexpr Nanoseconds operator-(Nanoseconds o) const { return {count - o.count}; }
    constexpr Seconds seconds() const { return Seconds{static_cast<double>(count) * 1e-9}; }
};

/// A point in virtual time or a duration in picoseconds; exact to 1e-12 s up to 106 days.
struct Picoseconds {
    std::int64_t count = 0;
    constexpr auto operator<=>(const Picoseconds&) const = default;
    constexpr Picoseconds operator+(Picoseconds o) const { return {count + o.count}; }
    constexpr Picoseconds operator-(Picoseconds o) const { return {count - o.count}; }
    constexpr Seconds seconds() const { return Seconds{static_cast<double>(count) * 1e-12}; }
    constexpr Nanoseconds nanoseconds() const { return {(count + 500) / 1000}; }
};

/// Nearest picosecond. `s` must be finite and not negative.
constexpr Picoseconds to_picoseconds(Seconds s) { return {static_cast<std::int64_t>(s.value * 1e12 + 0.5)}; }

}  // namespace lockstep
