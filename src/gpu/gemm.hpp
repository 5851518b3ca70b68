// What cuBLASLt chose for a matrix product: asked once per shape, shared by all products of the same shape.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/dtype.hpp"

namespace lockstep::gpu {

/// All that the choice of an algorithm depends on. A and B are the operands of step::Gemm, row-major.
struct ProductShape {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    bool is_a_transposed = false, is_b_transposed = false;
    DType a = DType::fp32, b = DType::fp32, c = DType::fp32;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    std::uint32_t a_alignment = 0, b_alignment = 0, c_alignment = 0;  ///< bytes, of the addresses
    std::uint32_t bias_alignment = 0;                                 ///< 0: no bias

    auto operator<=>(const ProductShape&) const = default;
};

struct ProductChoice {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;  ///< bytes
    std::string text;           ///< "cuBLASLt algorithm 66, tile id 20, stages id 36, split-k 1"
};

using ProductChoices = std::map<ProductShape, ProductChoice>;

}  // namespace lockstep::gpu
