// Matrix products in plain loops.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_double/elements.hpp"

namespace lockstep::gpu_double {

/// A column-major matrix as floats, rows x columns without gaps, from one that is stored transposed or not.
std::vector<float> gather(const void* data, Element element, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                          bool is_transposed);

/// [m, n] = [m, k] [k, n], all column-major without gaps.
std::vector<float> multiply(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m, std::int64_t n,
                            std::int64_t k);

}  // namespace lockstep::gpu_double
