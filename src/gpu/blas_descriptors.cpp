#include "gpu/blas_descriptors.hpp"

#include <string>

#include "base/error.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

template <class T>
void set(cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
    check_blas(cublasLtMatrixLayoutSetAttribute(matrix, attribute, &value, sizeof value),
               "cublasLtMatrixLayoutSetAttribute");
}
template <class T>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_blas(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

}  // namespace

cudaDataType_t blas_type(DType dtype) {
    switch (dtype) {
        case DType::fp32: return CUDA_R_32F;
        case DType::fp16: return CUDA_R_16F;
        case DType::bf16: return CUDA_R_16BF;
        default: throw LogicError("no matrix product of elements of type " + std::string(to_string(dtype)));
    }
}

MatrixDescriptor make_matrix(DType dtype, const MatrixShape& shape) {
    cublasLtMatrixLayout_t matrix = nullptr;
    check_blas(cublasLtMatrixLayoutCreate(&matrix, blas_type(dtype), static_cast<std::uint64_t>(shape.rows),
                                          static_cast<std::uint64_t>(shape.columns), shape.column_step),
               "cublasLtMatrixLayoutCreate");
    MatrixDescriptor owner(matrix);
    if (shape.batch > 1) {
        set(matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(shape.batch));
        set(matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, shape.matrix_step);
    }
    return owner;
}

ProductDescriptor make_product(cublasComputeType_t compute, cublasOperation_t first, cublasOperation_t second,
                               const void* bias) {
    cublasLtMatmulDesc_t product = nullptr;
    check_blas(cublasLtMatmulDescCreate(&product, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    ProductDescriptor owner(product);
    set(product, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(first));
    set(product, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<std::int32_t>(second));
    if (bias != nullptr) {
        set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_BIAS));
        set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    return owner;
}

PreferenceDescriptor make_preference(std::uint64_t most_workspace, std::uint32_t first, std::uint32_t second,
                                     std::uint32_t result) {
    cublasLtMatmulPreference_t preference = nullptr;
    check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    PreferenceDescriptor owner(preference);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, first);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, second);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result);
    return owner;
}

}  // namespace lockstep::gpu
