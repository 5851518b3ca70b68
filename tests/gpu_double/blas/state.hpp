// The handles and descriptors of the cuBLASLt double, and the frame of every call.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <optional>
#include <string>

#include "gpu_double/control.hpp"
#include "gpu_double/elements.hpp"
#include "gpu_double/handle_table.hpp"

namespace lockstep::gpu_double {

struct BlasHandle {
    int device;
};
/// Column-major: element (row, column) of matrix `i` is at i stride + column ld + row.
struct Matrix {
    std::uint32_t type = 0;
    std::uint64_t rows = 0, columns = 0;
    std::int64_t ld = 0, stride = 0;
    std::int32_t batch = 1;

    std::optional<Element> element() const;
    /// From the first element to behind the last one.
    std::int64_t extent() const;
    bool operator==(const Matrix&) const = default;
};
struct Product {
    cublasComputeType_t compute{};
    cudaDataType_t scale{};
    std::int32_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
    std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
};
struct Preference {
    std::uint64_t workspace = 0;
    std::uint32_t first = 256, second = 256, third = 256, result = 256;
};

struct BlasState {
    HandleTable<cublasLtHandle_t, BlasHandle> handles{16};
    HandleTable<cublasLtMatrixLayout_t, Matrix> matrices{17};
    HandleTable<cublasLtMatmulDesc_t, Product> products{18};
    HandleTable<cublasLtMatmulPreference_t, Preference> preferences{19};
};
BlasState& blas();

/// Reports it and returns CUBLAS_STATUS_INVALID_VALUE.
cublasStatus_t blas_misuse(const std::string& text);

/// body(hangs) -> cublasStatus_t, unless the test wants the call to fail.
template <class Body>
cublasStatus_t blas_call(const char* function, Body body) {
    const Fate fate = double_call(function);
    if (fate.fails) return static_cast<cublasStatus_t>(fate.code_or(CUBLAS_STATUS_EXECUTION_FAILED));
    return body(fate.hangs);
}

/// One product and its descriptors as they are when it is asked about or run.
struct Problem {
    Product product;
    Matrix first, second, before, result;

    std::int64_t m() const { return static_cast<std::int64_t>(result.rows); }
    std::int64_t n() const { return static_cast<std::int64_t>(result.columns); }
    std::int64_t k() const;
    bool has_bias() const { return product.epilogue == CUBLASLT_EPILOGUE_BIAS; }
    /// Of all that the algorithm was chosen for.
    std::uint64_t fingerprint() const;
};
/// Empty, and a misuse reported, when a descriptor is none or extents don't fit.
std::optional<Problem> find_problem(const char* function, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t first,
                                    cublasLtMatrixLayout_t second, cublasLtMatrixLayout_t before,
                                    cublasLtMatrixLayout_t result);
/// Whether the library has such products: elements of one type, accumulated in fp32, the result of their type or fp32.
bool is_supported(const Problem& problem);

/// What an algorithm holds, in the words of cublasLtMatmulAlgo_t.
struct Algorithm {
    std::int32_t id = 0;
    std::uint32_t tile = 0, stages = 0;
    std::int32_t split_k = 1;
    std::uint64_t workspace = 0;
    std::uint64_t fingerprint = 0;
    std::uint32_t first_alignment = 0, second_alignment = 0, result_alignment = 0;
    std::uint32_t mark = 0;  ///< that of the double's own
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
inline constexpr std::uint32_t algorithm_mark = 0x10c57e9;
/// Empty when the double did not make it.
std::optional<Algorithm> read_algorithm(const cublasLtMatmulAlgo_t* algorithm);

}  // namespace lockstep::gpu_double
