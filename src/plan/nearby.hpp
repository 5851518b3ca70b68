// Numbers that a message can propose in place of one that doesn't fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::plan {

/// "64" or "48 or 64": the multiples of `step` around `value`, from `step` up to `limit`.
std::string nearest_multiples(std::int64_t value, std::int64_t step, std::int64_t limit);

/// The divisors of n (at least 1), ascending.
std::vector<std::int64_t> divisors(std::int64_t n);

/// "1", "1 or 2", "1, 2 or 4": the values, the first few of them when there are many.
std::string either(const std::vector<std::int64_t>& values);

/// "2 or 4": the divisors of n around `value`.
std::string nearest_divisors(std::int64_t value, std::int64_t n);

}  // namespace lockstep::plan
