// Matrix products by cuBLASLt.
#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"
#include "gpu/product.hpp"

namespace lockstep::gpu {
namespace {

using step::Gemm;

/// Matrices [rows, columns] without gaps.
ProductOperand packed(const Operand& o, std::int64_t rows, std::int64_t columns) {
    return {o.dtype, columns, rows * columns, alignment_of(reinterpret_cast<std::uintptr_t>(o.data))};
}

ProductShape shape_of(const Gemm& g, MathType math, const Operands& o) {
    ProductShape s{g.batch, g.m, g.n, g.k, g.a == Gemm::Transpose::yes, g.b == Gemm::Transpose::yes};
    s.a = s.is_a_transposed ? packed(o.in[0], g.k, g.m) : packed(o.in[0], g.m, g.k);
    s.b = s.is_b_transposed ? packed(o.in[1], g.n, g.k) : packed(o.in[1], g.k, g.n);
    s.c = packed(o.out[0], g.m, g.n);
    s.compute = compute_type(o.in[0].dtype, math);
    if (o.in.size() > 2) s.bias_alignment = alignment_of(reinterpret_cast<std::uintptr_t>(o.in[2].data));
    return s;
}

class GemmKernel final : public Kernel {
public:
    GemmKernel(const Gemm& gemm, MathType math, const Operands& o, BlasLt& blas)
        : product_(shape_of(gemm, math, o), o.in.size() > 2 ? o.in[2].data : nullptr, blas),
          a_(o.in[0].data),
          b_(o.in[1].data),
          c_(o.out[0].data),
          access_(o.out[0].access) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        product_.enqueue(a_, b_, c_, adds(access_, moment), workspace_, stream);
    }
    std::int64_t workspace_bytes() const override { return product_.workspace_bytes(); }
    void bind_workspace(std::byte* workspace) override { workspace_ = workspace; }
    std::string algorithm() const override { return product_.text(); }

private:
    Product product_;
    const void *a_, *b_;
    void* c_;
    step::Access access_;
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
    return std::make_unique<GemmKernel>(gemm, math, o, setup.blas);
}

}  // namespace lockstep::gpu
