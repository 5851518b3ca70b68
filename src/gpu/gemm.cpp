// Matrix products by cuBLASLt.
//
// Its matrices are column-major, and a row-major matrix is its own transpose in that order. So it is asked for the
// transpose of the product, C^T [n, m] = op(B)^T op(A)^T: B is its first factor, A its second, and no data move. The
// bias over n is one value per row of that result, which its epilogue adds.
#include "gpu/gemm.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>

#include "base/error.hpp"
#include "gpu/blas_descriptors.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

using step::Gemm;

/// Largest power of two that divides the address; 256 is as much as an algorithm asks for.
std::uint32_t alignment_of(const void* address) {
    const auto value = reinterpret_cast<std::uintptr_t>(address) | 256;
    return static_cast<std::uint32_t>(value & (~value + 1));
}

/// How it multiplies: elements of 16 bits accumulate in fp32 either way.
cublasComputeType_t compute_type(DType dtype, MathType math) {
    return dtype == DType::fp32 && math == MathType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

ProductShape shape_of(const Gemm& g, MathType math, const Operands& o) {
    return {g.batch,
            g.m,
            g.n,
            g.k,
            g.a == Gemm::Transpose::yes,
            g.b == Gemm::Transpose::yes,
            o.in[0].dtype,
            o.in[1].dtype,
            o.out[0].dtype,
            compute_type(o.in[0].dtype, math),
            alignment_of(o.in[0].data),
            alignment_of(o.in[1].data),
            alignment_of(o.out[0].data),
            o.in.size() > 2 ? alignment_of(o.in[2].data) : 0};
}

std::string text_of(const ProductShape& s) {
    return fmt::format("{} product of {} x {} x {} (m, n, k), batch {}", to_string(s.a), s.m, s.n, s.k, s.batch);
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

/// The descriptors of one product, in cuBLASLt's order.
struct Descriptors {
    ProductDescriptor product;
    MatrixDescriptor first, second, result;
};

Descriptors descriptors_of(const ProductShape& s, const void* bias) {
    Descriptors d;
    d.product = make_product(s.compute, s.is_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                             s.is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, bias);
    d.first = s.is_b_transposed ? make_matrix(s.b, s.batch, s.k, s.n) : make_matrix(s.b, s.batch, s.n, s.k);
    d.second = s.is_a_transposed ? make_matrix(s.a, s.batch, s.m, s.k) : make_matrix(s.a, s.batch, s.k, s.m);
    d.result = make_matrix(s.c, s.batch, s.n, s.m);
    return d;
}

/// The first of what the heuristics propose, which come fastest first.
ProductChoice ask(const ProductShape& shape, const Descriptors& d, BlasLt& blas) {
    const std::size_t limit = blas.most_workspace();
    const PreferenceDescriptor preference =
        make_preference(limit, shape.b_alignment, shape.a_alignment, shape.c_alignment);
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        blas.handle(), d.product.get(), d.first.get(), d.second.get(), d.result.get(), d.result.get(), preference.get(),
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
                    text_of(shape), to_string(shape.a), to_string(shape.b), to_string(shape.c)));
}

class GemmKernel final : public Kernel {
public:
    GemmKernel(const ProductShape& shape, const Operands& o, BlasLt& blas)
        : blas_(blas),
          descriptors_(descriptors_of(shape, shape.bias_alignment > 0 ? o.in[2].data : nullptr)),
          a_(o.in[0].data),
          b_(o.in[1].data),
          c_(o.out[0].data),
          access_(o.out[0].access) {
        auto& known = blas.product_choices();
        auto found = known.find(shape);
        if (found == known.end()) found = known.emplace(shape, ask(shape, descriptors_, blas)).first;
        choice_ = found->second;
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        const float alpha = 1, beta = adds(access_, moment) ? 1 : 0;
        const Descriptors& d = descriptors_;
        check_blas(cublasLtMatmul(blas_.handle(), d.product.get(), &alpha, b_, d.first.get(), a_, d.second.get(), &beta,
                                  c_, d.result.get(), c_, d.result.get(), &choice_.algorithm, workspace_,
                                  choice_.workspace, stream),
                   "cublasLtMatmul");
    }
    std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(choice_.workspace); }
    void bind_workspace(std::byte* workspace) override { workspace_ = workspace; }
    std::string algorithm() const override { return choice_.text; }

private:
    BlasLt& blas_;
    Descriptors descriptors_;
    const void *a_, *b_;
    void* c_;
    step::Access access_;
    ProductChoice choice_;
    std::byte* workspace_ = nullptr;
};

void check(const Gemm& g, MathType math, const Operands& o) {
    expect_slots(o, 2, 1, "gemm");
    for (const Operand& operand : o.in)
        if (math == MathType::fp8 || operand.dtype == DType::fp8)
            throw RuntimeError(
                "a matrix product in fp8 needs scaling factors, which a step doesn't have yet; use precision bf16");
    if (o.in.size() > 2 && o.in[2].dtype != o.out[0].dtype)
        throw LogicError("the bias of a matrix product must have its result's type");
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    for (const std::int64_t extent : {g.batch, g.m, g.n, g.k})
        if (extent > most)
            throw RuntimeError(
                fmt::format("a matrix product of {} x {} x {} (m, n, k), batch {}, is beyond cuBLASLt's "
                            "32-bit extents; use a smaller batch_per_rank",
                            g.m, g.n, g.k, g.batch));
}

}  // namespace

std::unique_ptr<Kernel> make_gemm(const Gemm& gemm, MathType math, const Operands& o, const KernelSetup& setup) {
    check(gemm, math, o);
    return std::make_unique<GemmKernel>(shape_of(gemm, math, o), o, setup.blas);
}

}  // namespace lockstep::gpu
