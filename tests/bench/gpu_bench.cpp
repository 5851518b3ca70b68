// Matrix products of the GPU executor beside the same products by cuBLASLt called alone. Needs a GPU: ratios of a test
// double would say nothing.
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "bench/figure.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/device_probe.hpp"
#include "gpu/handles.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"

namespace {

using namespace lockstep;

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;
constexpr int launches = 20, pairs = 15;

struct Product {
    std::int64_t m, n, k;
    DType dtype;
    MathType math;
};

struct Buffers {
    gpu::DeviceMemory a, b, c, workspace;
    explicit Buffers(const Product& p)
        : a(gpu::allocate_device(bytes(p.m * p.k, p), "A")),
          b(gpu::allocate_device(bytes(p.k * p.n, p), "B")),
          c(gpu::allocate_device(bytes(p.m * p.n, p), "C")),
          workspace(gpu::allocate_device(static_cast<std::int64_t>(workspace_bytes), "a workspace")) {
        gpu::check_cuda(cudaMemset(a.get(), 0, static_cast<std::size_t>(bytes(p.m * p.k, p))), "cudaMemset");
        gpu::check_cuda(cudaMemset(b.get(), 0, static_cast<std::size_t>(bytes(p.k * p.n, p))), "cudaMemset");
    }
    static std::int64_t bytes(std::int64_t elements, const Product& p) {
        return elements * static_cast<std::int64_t>(size_of(p.dtype).value);
    }
};

/// C = A B, row-major, as a program that knows nothing of lockstep would ask for it: the first choice of the
/// heuristics.
class Alone {
public:
    Alone(cublasLtHandle_t handle, const Product& p, const Buffers& buffers) : handle_(handle), buffers_(buffers) {
        const cudaDataType_t type = p.dtype == DType::bf16   ? CUDA_R_16BF
                                    : p.dtype == DType::fp16 ? CUDA_R_16F
                                                             : CUDA_R_32F;
        const auto compute = p.math == MathType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
        gpu::check_blas(cublasLtMatmulDescCreate(&product_, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
        // Row-major A [m, k] is column-major [k, m]: C' = B' A'.
        make_layout(a_, type, p.k, p.m);
        make_layout(b_, type, p.n, p.k);
        make_layout(c_, type, p.n, p.m);
        cublasLtMatmulPreference_t preference = nullptr;
        gpu::check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
        gpu::check_blas(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                             &workspace_bytes, sizeof workspace_bytes),
                        "cublasLtMatmulPreferenceSetAttribute");
        int found = 0;
        gpu::check_blas(
            cublasLtMatmulAlgoGetHeuristic(handle_, product_, b_, a_, c_, c_, preference, 1, &choice_, &found),
            "cublasLtMatmulAlgoGetHeuristic");
        cublasLtMatmulPreferenceDestroy(preference);
    }
    ~Alone() {
        for (const auto layout : {a_, b_, c_}) cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulDescDestroy(product_);
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

    void enqueue(cudaStream_t stream) const {
        const float one = 1, zero = 0;
        gpu::check_blas(
            cublasLtMatmul(handle_, product_, &one, buffers_.b.get(), b_, buffers_.a.get(), a_, &zero, buffers_.c.get(),
                           c_, buffers_.c.get(), c_, &choice_.algo, buffers_.workspace.get(), workspace_bytes, stream),
            "cublasLtMatmul");
    }

private:
    static void make_layout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, std::int64_t rows,
                            std::int64_t columns) {
        gpu::check_blas(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                                   static_cast<std::uint64_t>(columns), rows),
                        "cublasLtMatrixLayoutCreate");
    }
    cublasLtHandle_t handle_;
    const Buffers& buffers_;
    cublasLtMatmulDesc_t product_ = nullptr;
    cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
    cublasLtMatmulHeuristicResult_t choice_{};
};

gpu::Operand operand(const gpu::DeviceMemory& memory, Shape shape, DType dtype) {
    gpu::Operand o;
    o.shape = o.global = std::move(shape);
    o.runs = step::whole_runs(o.shape);
    o.data = memory.get();
    o.dtype = dtype;
    return o;
}

template <class F>
double milliseconds(cudaStream_t stream, F&& enqueue) {
    const gpu::Event begin = gpu::make_event(gpu::EventUse::timing), end = gpu::make_event(gpu::EventUse::timing);
    gpu::check_cuda(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
    for (int i = 0; i < launches; ++i) enqueue();
    gpu::check_cuda(cudaEventRecord(end.get(), stream), "cudaEventRecord");
    gpu::check_cuda(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    float time = 0;
    gpu::check_cuda(cudaEventElapsedTime(&time, begin.get(), end.get()), "cudaEventElapsedTime");
    return time;
}

/// Median of interleaved pairs: time of ours over the library's.
double ratio(const Product& p) {
    const Buffers buffers(p);
    gpu::BlasLt blas;
    gpu::Dnn dnn;
    const Alone alone(blas.handle(), p, buffers);
    gpu::Operands operands;
    operands.in = {operand(buffers.a, {p.m, p.k}, p.dtype), operand(buffers.b, {p.k, p.n}, p.dtype)};
    operands.out = {{operand(buffers.c, {p.m, p.n}, p.dtype), step::Access::overwrite}};
    const auto kernel = gpu::make_gemm(step::Gemm{1, p.m, p.n, p.k}, p.math, operands, {blas, dnn, 1});
    const gpu::DeviceMemory workspace = gpu::allocate_device(kernel->workspace_bytes(), "a workspace");
    kernel->bind_workspace(workspace.get());
    const gpu::Stream stream = gpu::make_stream();
    std::vector<double> ratios;
    for (int i = 0; i < pairs + 2; ++i) {
        const double ours = milliseconds(stream.get(), [&] { kernel->enqueue({}, stream.get()); });
        const double theirs = milliseconds(stream.get(), [&] { alone.enqueue(stream.get()); });
        if (i >= 2) ratios.push_back(ours / theirs);
    }
    std::nth_element(ratios.begin(), ratios.begin() + pairs / 2, ratios.end());
    return ratios[pairs / 2];
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (gpu::probe_devices().front().is_test_double) throw RuntimeError("this is a test double of a GPU");
    } catch (const std::exception& reason) {
        fmt::print(stderr, "gpu_bench needs a GPU: {}\n", reason.what());
        return 77;
    }
    for (const Product& p : std::array<Product, 9>{{{1024, 1024, 1024, DType::bf16, MathType::bf16},
                                                    {2048, 2048, 2048, DType::bf16, MathType::bf16},
                                                    {4096, 4096, 4096, DType::bf16, MathType::bf16},
                                                    {8192, 8192, 8192, DType::bf16, MathType::bf16},
                                                    {8192, 2304, 768, DType::bf16, MathType::bf16},
                                                    {8192, 3072, 768, DType::bf16, MathType::bf16},
                                                    {8192, 50304, 768, DType::bf16, MathType::bf16},
                                                    {4096, 4096, 4096, DType::fp16, MathType::fp16},
                                                    {4096, 4096, 4096, DType::fp32, MathType::tf32}}})
        // 0.97 of the library's rate.
        bench::register_figure(fmt::format("gemm {} x {} x {} {}", p.m, p.n, p.k, to_string(p.math)), [p] {
            return bench::Figure{"ratio", ratio(p), 1 / 0.97};
        });
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
