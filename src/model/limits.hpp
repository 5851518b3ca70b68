// How big a model may be, and products that say so instead of overflowing.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/shape.hpp"

namespace lockstep::model {

inline constexpr std::int64_t max_extent = 1'000'000'000;
inline constexpr std::int64_t max_layers = 1'000'000;
inline constexpr std::int64_t max_elements = 1'000'000'000'000'000;  ///< of all parameters, or of one layer's output

/// Product of non-negative factors; throws InputError when it leaves 64 bits.
std::int64_t checked_product(std::initializer_list<std::int64_t> factors);
/// Sum of non-negative terms; throws InputError when it leaves 64 bits.
std::int64_t checked_sum(std::int64_t a, std::int64_t b);
/// Elements of a shape; throws InputError above max_elements.
std::int64_t checked_elements(const Shape& shape);

}  // namespace lockstep::model
