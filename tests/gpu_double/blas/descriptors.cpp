// Handles and descriptors of cuBLASLt's interface.
#include <fmt/format.h>

#include <cstring>

#include "gpu_double/blas/state.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {
namespace {

/// Sets a field from a caller's buffer, which must be of its size.
template <class T>
cublasStatus_t set(const char* function, int attribute, T& field, const void* buffer, std::size_t bytes) {
    if (buffer == nullptr || bytes != sizeof(T))
        return blas_misuse(fmt::format("{}: attribute {} has {} bytes, not {}", function, attribute, sizeof(T), bytes));
    std::memcpy(&field, buffer, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

template <class Table, class Handle>
cublasStatus_t destroy(const char* function, Table& table, Handle handle) {
    return blas_call(function, [&](bool) {
        return table.remove(handle) ? CUBLAS_STATUS_SUCCESS
                                    : blas_misuse(fmt::format("{}: there is none such (destroyed?)", function));
    });
}

cublasStatus_t set_matrix(Matrix& m, cublasLtMatrixLayoutAttribute_t attribute, const void* buffer, std::size_t bytes) {
    constexpr const char* function = "cublasLtMatrixLayoutSetAttribute";
    switch (attribute) {
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(function, attribute, m.batch, buffer, bytes);
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(function, attribute, m.stride, buffer, bytes);
        default: return blas_misuse(fmt::format("{}: attribute {} is unknown to the double", function, int{attribute}));
    }
}

cublasStatus_t set_product(Product& p, cublasLtMatmulDescAttributes_t attribute, const void* buffer,
                           std::size_t bytes) {
    constexpr const char* function = "cublasLtMatmulDescSetAttribute";
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA: return set(function, attribute, p.first, buffer, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSB: return set(function, attribute, p.second, buffer, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(function, attribute, p.epilogue, buffer, bytes);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(function, attribute, p.bias, buffer, bytes);
        default: return blas_misuse(fmt::format("{}: attribute {} is unknown to the double", function, int{attribute}));
    }
}

cublasStatus_t set_preference(Preference& p, cublasLtMatmulPreferenceAttributes_t attribute, const void* buffer,
                              std::size_t bytes) {
    constexpr const char* function = "cublasLtMatmulPreferenceSetAttribute";
    switch (attribute) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(function, attribute, p.workspace, buffer, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(function, attribute, p.first, buffer, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(function, attribute, p.second, buffer, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(function, attribute, p.third, buffer, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(function, attribute, p.result, buffer, bytes);
        default: return blas_misuse(fmt::format("{}: attribute {} is unknown to the double", function, int{attribute}));
    }
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    return blas_call("cublasLtCreate", [&](bool) {
        const int device = current_device();
        if (device < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
        *handle = blas().handles.add(std::make_shared<BlasHandle>(device));
        return CUBLAS_STATUS_SUCCESS;
    });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy("cublasLtDestroy", blas().handles, handle); }

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
        case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
        case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
        default: return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "as the test double says it";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matrix, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t ld) {
    return blas_call("cublasLtMatrixLayoutCreate", [&](bool) {
        if (rows == 0 || columns == 0 || ld < static_cast<std::int64_t>(rows))
            return blas_misuse(fmt::format("cublasLtMatrixLayoutCreate: {} rows, {} columns, leading dimension {}",
                                           rows, columns, ld));
        Matrix m;
        m.type = type;
        m.rows = rows;
        m.columns = columns;
        m.ld = ld;
        *matrix = blas().matrices.add(std::make_shared<Matrix>(m));
        return CUBLAS_STATUS_SUCCESS;
    });
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
    return destroy("cublasLtMatrixLayoutDestroy", blas().matrices, matrix);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matrix,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* buffer,
                                                std::size_t bytes) {
    return blas_call("cublasLtMatrixLayoutSetAttribute", [&](bool) {
        const auto m = blas().matrices.find(matrix);
        return m ? set_matrix(*m, attribute, buffer, bytes)
                 : blas_misuse("cublasLtMatrixLayoutSetAttribute: no such layout (destroyed?)");
    });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    return blas_call("cublasLtMatmulDescCreate", [&](bool) {
        *product = blas().products.add(std::make_shared<Product>(Product{compute, scale}));
        return CUBLAS_STATUS_SUCCESS;
    });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    return destroy("cublasLtMatmulDescDestroy", blas().products, product);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* buffer, std::size_t bytes) {
    return blas_call("cublasLtMatmulDescSetAttribute", [&](bool) {
        const auto p = blas().products.find(product);
        return p ? set_product(*p, attribute, buffer, bytes)
                 : blas_misuse("cublasLtMatmulDescSetAttribute: no such descriptor (destroyed?)");
    });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    return blas_call("cublasLtMatmulPreferenceCreate", [&](bool) {
        *preference = blas().preferences.add(std::make_shared<Preference>());
        return CUBLAS_STATUS_SUCCESS;
    });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    return destroy("cublasLtMatmulPreferenceDestroy", blas().preferences, preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* buffer,
                                                    std::size_t bytes) {
    return blas_call("cublasLtMatmulPreferenceSetAttribute", [&](bool) {
        const auto p = blas().preferences.find(preference);
        return p ? set_preference(*p, attribute, buffer, bytes)
                 : blas_misuse("cublasLtMatmulPreferenceSetAttribute: no such preference (destroyed?)");
    });
}
}
