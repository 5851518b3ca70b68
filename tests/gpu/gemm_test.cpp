// Matrix products beside the CPU's, and what is asked of cuBLASLt and kept.
#include <gmock/gmock.h>

#include "base/error.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using step::Gemm;
using Transpose = Gemm::Transpose;

struct Types {
    DType in, out;
};
constexpr Types all_types[] = {{DType::fp32, DType::fp32},
                               {DType::fp16, DType::fp16},
                               {DType::fp16, DType::fp32},
                               {DType::bf16, DType::bf16},
                               {DType::bf16, DType::fp32}};

Shape stored(std::int64_t batch, std::int64_t rows, std::int64_t columns, Transpose transpose) {
    return transpose == Transpose::yes ? Shape{batch, columns, rows} : Shape{batch, rows, columns};
}

Case product(const Gemm& g, Types types, Access access = Access::overwrite) {
    const std::int64_t m = g.m, n = g.n, k = g.k, b = g.batch;
    Case c;
    c.op = g;
    c.in = {slot(stored(b, m, k, g.a), normal_values(b * m * k, 1), types.in),
            slot(stored(b, k, n, g.b), normal_values(b * k * n, 2), types.in)};
    c.out = {slot({b, m, n}, normal_values(b * m * n, 3), types.out, step::Layout::row_major, access)};
    c.tolerance = std::sqrt(static_cast<float>(k));  // sums of k products of size 1
    return c;
}
Case with_bias(Case c, std::int64_t n) {
    c.in.push_back(slot({n}, normal_values(n, 4), c.out[0].dtype));
    return c;
}

TEST(GpuGemm, multiplies_all_transposes_in_all_types) {
    for (const Types types : all_types)
        for (const Transpose a : {Transpose::no, Transpose::yes})
            for (const Transpose b : {Transpose::no, Transpose::yes}) {
                expect_parity(product({1, 5, 7, 3, a, b}, types));
                expect_parity(product({1, 33, 65, 130, a, b}, types));
            }
}

TEST(GpuGemm, multiplies_each_matrix_of_a_batch) {
    for (const Types types : all_types)
        for (const Transpose a : {Transpose::no, Transpose::yes})
            for (const Transpose b : {Transpose::no, Transpose::yes})
                expect_parity(product({3, 17, 9, 70, a, b}, types));
}

TEST(GpuGemm, adds_a_bias_to_each_row_of_each_matrix) {
    for (const Types types : {all_types[0], all_types[1], all_types[3]}) {
        expect_parity(with_bias(product({1, 6, 11, 66}, types), 11));
        expect_parity(with_bias(product({4, 6, 10, 8, Transpose::no, Transpose::yes}, types), 10));
    }
}

TEST(GpuGemm, replaces_or_adds_as_the_access_says) {
    for (const Types types : all_types)
        for (const Access access : {Access::overwrite, Access::accumulate, Access::accumulate_micro_batches}) {
            Case c = product({2, 12, 20, 80}, types, access);
            c.moments = {{0, 0}, {0, 1}, {0, 2}, {1, 0}};
            c.tolerance *= 3;
            expect_parity(c);
        }
    Case c = with_bias(product({1, 12, 20, 80}, all_types[0], Access::accumulate_micro_batches), 20);
    c.moments = {{0, 0}, {0, 1}};
    expect_parity(c);
}

TEST(GpuGemm, rounds_its_factors_to_10_bits_in_tf32) {
    Case c = product({1, 40, 30, 64}, all_types[0]);
    c.math = MathType::tf32;
    c.tolerance *= 0x1p-10F / 1e-5F;
    expect_parity(c);
    const float exact = run_on_cpu(c)[0][0][0], rounded = run_on_gpu(c)[0][0][0];
    EXPECT_NE(exact, rounded);
}

TEST(GpuGemm, takes_operands_that_are_parts_of_larger_tensors) {
    const std::int64_t m = 8, n = 24, k = 72;
    DeviceTensor a(slot({m * k + 1}, normal_values(m * k + 1, 1), DType::bf16)),
        b(slot({n * k}, normal_values(n * k, 2), DType::bf16)), c(slot({m * n}, {}, DType::bf16));
    Operands o{{a.operand(), b.operand()}, {{c.operand()}}};
    o.in[0].data = static_cast<std::byte*>(o.in[0].data) + 2;  // aligned to one element only
    o.in[0].shape = {m, k};
    BlasLt blas;
    Dnn dnn;
    const Stream stream = make_stream();
    const auto kernel = make_gemm({1, m, n, k, Transpose::no, Transpose::yes}, MathType::bf16, o, {blas, dnn, 1});
    const DeviceMemory workspace = allocate_device(kernel->workspace_bytes(), "a workspace");
    kernel->bind_workspace(workspace.get());
    kernel->enqueue({}, stream.get());
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    const auto rounded = [](float value) { return load(store<__nv_bfloat16>(value)); };
    const Values left = normal_values(m * k + 1, 1), right = normal_values(n * k, 2);
    float first = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) first += rounded(left[i + 1]) * rounded(right[i]);
    EXPECT_NEAR(c.read()[0], first, 0.02F * (1 + std::abs(first)));
}

/// Operands of one shape, for products that are only made.
struct Made {
    explicit Made(std::int64_t n) : tensor(slot({n, n})) {
        o = {{tensor.operand(), tensor.operand()}, {{tensor.operand()}}};
        gemm = {1, n, n, n};
    }
    DeviceTensor tensor;
    Operands o;
    Gemm gemm;
};

TEST(GpuGemm, asks_the_heuristics_once_per_shape) {
    BlasLt blas;
    Dnn dnn;
    Made small(16), large(96);
    const KernelSetup setup{blas, dnn, 1};
    const auto first = make_gemm(small.gemm, MathType::fp32, small.o, setup);
    const auto again = make_gemm(small.gemm, MathType::fp32, small.o, setup);
    EXPECT_EQ(blas.product_choices().size(), 1U);
    const auto tensor_cores = make_gemm(small.gemm, MathType::tf32, small.o, setup);
    const auto other = make_gemm(large.gemm, MathType::fp32, large.o, setup);
    EXPECT_EQ(blas.product_choices().size(), 3U);
    EXPECT_EQ(first->algorithm(), again->algorithm());
    EXPECT_EQ(other->algorithm(), "cuBLASLt algorithm 66, tile id 20, stages id 36, split-k 2");
    EXPECT_EQ(other->workspace_bytes(), 96 * 96 * 4);
}

TEST(GpuGemm, refuses_fp8_and_names_another_precision) {
    BlasLt blas;
    Dnn dnn;
    Made made(16);
    try {
        make_gemm(made.gemm, MathType::fp8, made.o, {blas, dnn, 1});
        FAIL();
    } catch (const RuntimeError& error) { EXPECT_THAT(error.what(), ::testing::HasSubstr("use precision bf16")); }
}

}  // namespace
}  // namespace lockstep::gpu::testing
