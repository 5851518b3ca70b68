// Element-wise reduction of number arrays in memory, as every World does it between two contributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "world/world.hpp"

namespace lockstep::world {

/// into[i] = op(into[i], from[i]) for spans of equal length, aligned to `type`. bf16 is widened to fp32, reduced, and
/// rounded to the nearest even bf16; sums of integers wrap.
void accumulate(std::span<std::byte> into, std::span<const std::byte> from, Number type, Reduce op);

/// The bits of a bf16 as the fp32 they mean.
float from_bf16(std::uint16_t bits);
/// Nearest bf16, ties to even; NaN stays NaN (quiet).
std::uint16_t to_bf16(float value);

}  // namespace lockstep::world
