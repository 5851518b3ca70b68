// Matrix products by cuBLASLt: what it chose is asked once per shape and shared by all products of the same shape.
//
// Its matrices are column-major, and a row-major matrix is its own transpose in that order. So it is asked for the
// transpose of the product, C^T [n, m] = op(B)^T op(A)^T: B is its first factor, A its second, and no data move. The
// bias over n is one value per row of that result, which its epilogue adds.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/dtype.hpp"
#include "gpu/blas_descriptors.hpp"

namespace lockstep::gpu {

class BlasLt;

/// Row-major matrices as they are stored; from one row, and one matrix of the batch, to the next it is so many
/// elements.
struct ProductOperand {
    DType dtype = DType::fp32;
    std::int64_t row = 0, matrix = 0;
    std::uint32_t alignment = 256;  ///< bytes, of the addresses

    auto operator<=>(const ProductOperand&) const = default;
};

/// All that the choice of an algorithm depends on: C[batch][m, n] = op(A) op(B), with A and B stored as step::Gemm
/// says.
struct ProductShape {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    bool is_a_transposed = false, is_b_transposed = false;
    ProductOperand a, b, c;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    std::uint32_t bias_alignment = 0;  ///< 0: no bias

    auto operator<=>(const ProductShape&) const = default;
};

struct ProductChoice {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;  ///< bytes
    std::string text;           ///< "cuBLASLt algorithm 66, tile id 20, stages id 36, split-k 1"
};

using ProductChoices = std::map<ProductShape, ProductChoice>;

/// Largest power of two that divides the number of bytes; 256 is as much as an algorithm asks for.
constexpr std::uint32_t alignment_of(std::uint64_t bytes) {
    bytes |= 256;
    return static_cast<std::uint32_t>(bytes & (~bytes + 1));
}
/// How elements are multiplied: those of 16 bits accumulate in fp32 either way.
cublasComputeType_t compute_type(DType dtype, MathType math);

/// A product whose algorithm is chosen. Throws RuntimeError where cuBLASLt has none.
class Product {
public:
    /// `bias`: n elements of C's type, or null.
    Product(const ProductShape& shape, const void* bias, BlasLt& blas);
    std::int64_t workspace_bytes() const { return static_cast<std::int64_t>(choice_->workspace); }
    const std::string& text() const { return choice_->text; }
    /// C = A B, or C += A B.
    void enqueue(const void* a, const void* b, void* c, bool adds, std::byte* workspace, cudaStream_t stream) const;

private:
    /// The first of what the heuristics propose, which come fastest first.
    ProductChoice ask(const ProductShape& shape) const;

    BlasLt* blas_;
    ProductDescriptor product_;
    MatrixDescriptor first_, second_, result_;  // in cuBLASLt's order
    const ProductChoice* choice_;               // of blas_
};

}  // namespace lockstep::gpu
