#include "gpu/product.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

std::string text_of(const ProductShape& s) {
    return fmt::format("{} product of {} x {} x {} (m, n, k), batch {}", to_string(s.a.dtype), s.m, s.n, s.k, s.batch);
}

template <class T>
T setting(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
    T value{};
    std::size_t written = 0;
    check_blas(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written),
               "cublasLtMatmulAlgoConfigGetAttribute");
    return value;
}

std::string describe(const cublasLtMatmulAlgo_t& algorithm) {
    return fmt::format("cuBLASLt algorithm {}, tile id {}, stages id {}, split-k {}",
                       setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                       setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                       setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                       setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

/// A row-major matrix [rows, columns] in cuBLASLt's order.
MatrixDescriptor make_operand(const ProductOperand& o, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
    return make_matrix(o.dtype, {batch, columns, rows, o.row, o.matrix});
}

}  // namespace

cublasComputeType_t compute_type(DType dtype, MathType math) {
    return dtype == DType::fp32 && math == MathType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

Product::Product(const ProductShape& s, const void* bias, BlasLt& blas)
    : blas_(&blas),
      product_(make_product(s.compute, s.is_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            s.is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, bias)),
      first_(s.is_b_transposed ? make_operand(s.b, s.batch, s.n, s.k) : make_operand(s.b, s.batch, s.k, s.n)),
      second_(s.is_a_transposed ? make_operand(s.a, s.batch, s.k, s.m) : make_operand(s.a, s.batch, s.m, s.k)),
      result_(make_operand(s.c, s.batch, s.m, s.n)) {
    ProductChoices& known = blas.product_choices();
    auto found = known.find(s);
    if (found == known.end()) found = known.emplace(s, ask(s)).first;
    choice_ = &found->second;
}

ProductChoice Product::ask(const ProductShape& s) const {
    const std::size_t limit = blas_->most_workspace();
    const PreferenceDescriptor preference = make_preference(limit, s.b.alignment, s.a.alignment, s.c.alignment);
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        blas_->handle(), product_.get(), first_.get(), second_.get(), result_.get(), result_.get(), preference.get(),
        static_cast<int>(results.size()), results.data(), &count);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
    for (int i = 0; i < count; ++i) {
        const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
        if (result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= limit)
            return {result.algo, result.workspaceSize, describe(result.algo)};
    }
    throw RuntimeError(
        fmt::format("cuBLASLt has no algorithm for a {} (operands of {} x {} to {}) on this device; "
                    "use another precision",
                    text_of(s), to_string(s.a.dtype), to_string(s.b.dtype), to_string(s.c.dtype)));
}

void Product::enqueue(const void* a, const void* b, void* c, bool adds, std::byte* workspace,
                      cudaStream_t stream) const {
    const float alpha = 1, beta = adds ? 1 : 0;
    check_blas(
        cublasLtMatmul(blas_->handle(), product_.get(), &alpha, b, first_.get(), a, second_.get(), &beta, c,
                       result_.get(), c, result_.get(), &choice_->algorithm, workspace, choice_->workspace, stream),
        "cublasLtMatmul");
}

}  // namespace lockstep::gpu
