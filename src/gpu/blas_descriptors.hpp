// One owner for each cuBLASLt descriptor.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/dtype.hpp"

namespace lockstep::gpu {

/// Throws LogicError for a type that no tensor of a product has.
cudaDataType_t blas_type(DType dtype);

struct MatrixDeleter {
    void operator()(cublasLtMatrixLayout_t matrix) const { cublasLtMatrixLayoutDestroy(matrix); }
};
using MatrixDescriptor = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, MatrixDeleter>;
/// Column-major: `batch` matrices of rows x columns. From one column, and one matrix, to the next it is so many
/// elements.
struct MatrixShape {
    std::int64_t batch = 1, rows = 0, columns = 0, column_step = 0, matrix_step = 0;
};
MatrixDescriptor make_matrix(DType dtype, const MatrixShape& shape);

struct ProductDeleter {
    void operator()(cublasLtMatmulDesc_t product) const { cublasLtMatmulDescDestroy(product); }
};
using ProductDescriptor = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, ProductDeleter>;
/// Factors alpha and beta are fp32 in host memory. `bias`: one value per row of the result, of its type; null: none.
ProductDescriptor make_product(cublasComputeType_t compute, cublasOperation_t first, cublasOperation_t second,
                               const void* bias);

struct PreferenceDeleter {
    void operator()(cublasLtMatmulPreference_t preference) const { cublasLtMatmulPreferenceDestroy(preference); }
};
using PreferenceDescriptor = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, PreferenceDeleter>;
/// Alignments in bytes: of the first and the second factor and of the result.
PreferenceDescriptor make_preference(std::uint64_t most_workspace, std::uint32_t first, std::uint32_t second,
                                     std::uint32_t result);

}  // namespace lockstep::gpu
