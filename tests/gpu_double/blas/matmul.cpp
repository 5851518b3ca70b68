// cublasLtMatmul: D = alpha op(A) op(B) + beta C (+ bias).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gpu_double/blas/product.hpp"
#include "gpu_double/blas/state.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr const char* function = "cublasLtMatmul";

struct Call {
    Problem problem;
    float alpha, beta;
    const void *a, *b, *c;
    void* d;
    void* workspace;
    std::size_t workspace_bytes;
};

bool is_aligned(const void* address, std::uint32_t alignment) {
    return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

bool expect_matrix(const Matrix& m, const void* address, const char* name) {
    const std::size_t bytes = static_cast<std::size_t>(m.extent()) * size_of(*m.element());
    return expect_device_range(address, bytes, fmt::format("{}: {}", function, name).c_str());
}

/// Reports what is wrong with the addresses, else nothing.
bool are_operands_good(const Call& c) {
    const Problem& p = c.problem;
    bool good =
        expect_matrix(p.first, c.a, "A") && expect_matrix(p.second, c.b, "B") && expect_matrix(p.result, c.d, "D");
    if (good && c.beta != 0) good = expect_matrix(p.before, c.c, "C");
    if (good && p.has_bias())
        good = expect_device_range(p.product.bias, static_cast<std::size_t>(p.m()) * size_of(*p.result.element()),
                                   "cublasLtMatmul: the bias");
    if (good && c.workspace_bytes > 0)
        good = expect_device_range(c.workspace, c.workspace_bytes, "cublasLtMatmul: the workspace");
    return good;
}

/// What is wrong with the algorithm for this call; empty: nothing.
std::string objection(const Call& c, const cublasLtMatmulAlgo_t* algorithm) {
    const auto a = algorithm == nullptr ? std::nullopt : read_algorithm(algorithm);
    if (!a) return "not an algorithm of the heuristics";
    if (a->fingerprint != c.problem.fingerprint()) return "the algorithm was chosen for another problem";
    if (!is_aligned(c.a, a->first_alignment) || !is_aligned(c.b, a->second_alignment) ||
        !is_aligned(c.d, a->result_alignment))
        return "an operand is less aligned than the algorithm was told";
    if (a->workspace > c.workspace_bytes)
        return fmt::format("the algorithm needs {} bytes of workspace, not {}", a->workspace, c.workspace_bytes);
    if (a->workspace > 0 && !is_aligned(c.workspace, 16)) return "the workspace is not aligned to 16 bytes";
    return {};
}

void run(const Call& c) {
    const Problem& p = c.problem;
    const std::int64_t m = p.m(), n = p.n(), k = p.k();
    const Element in = *p.first.element(), out = *p.result.element();
    // Nobody may expect anything of the workspace.
    if (c.workspace_bytes > 0) std::memset(c.workspace, 0xff, c.workspace_bytes);
    for (std::int64_t i = 0; i < p.result.batch; ++i) {
        const auto at = [&](const void* data, const Matrix& matrix, Element element) {
            return static_cast<const std::byte*>(data) +
                   i * matrix.stride * static_cast<std::int64_t>(size_of(element));
        };
        std::vector<float> a = gather(at(c.a, p.first, in), in, m, k, p.first.ld, p.product.first != CUBLAS_OP_N);
        std::vector<float> b = gather(at(c.b, p.second, in), in, k, n, p.second.ld, p.product.second != CUBLAS_OP_N);
        if (p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32) {
            std::transform(a.begin(), a.end(), a.begin(), to_tf32);
            std::transform(b.begin(), b.end(), b.begin(), to_tf32);
        }
        const std::vector<float> product = multiply(a, b, m, n, k);
        for (std::int64_t column = 0; column < n; ++column)
            for (std::int64_t row = 0; row < m; ++row) {
                float value = c.alpha * product[static_cast<std::size_t>(column * m + row)];
                if (c.beta != 0) value += c.beta * load(at(c.c, p.before, out), out, column * p.before.ld + row);
                if (p.has_bias()) value += load(p.product.bias, out, row);
                store(const_cast<std::byte*>(at(c.d, p.result, out)), out, column * p.result.ld + row, value);
            }
    }
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                                         const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                                         cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                                         cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                                         const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                         std::size_t workspace_bytes, cudaStream_t stream) {
    return blas_call(function, [&](bool hangs) {
        const auto owner = blas().handles.find(handle);
        if (!owner) return blas_misuse("cublasLtMatmul: no such handle (destroyed?)");
        if (device_of(stream) != owner->device)
            return blas_misuse("cublasLtMatmul: the stream is of another device than the handle");
        const auto problem = find_problem(function, product, a_layout, b_layout, c_layout, d_layout);
        if (!problem) return CUBLAS_STATUS_INVALID_VALUE;
        if (!is_supported(*problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
        if (c == d && problem->before != problem->result)
            return blas_misuse("cublasLtMatmul: C and D are the same memory, but not the same layout");
        const Call call{
            *problem,       *static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b, c, d, workspace,
            workspace_bytes};
        if (const std::string wrong = objection(call, algorithm); !wrong.empty())
            return blas_misuse(fmt::format("cublasLtMatmul: {}", wrong));
        if (!are_operands_good(call)) return CUBLAS_STATUS_INVALID_VALUE;
        const bool is_queued = enqueue(stream, [call, hangs] { hangs ? wait_forever() : run(call); });
        return is_queued ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    });
}
