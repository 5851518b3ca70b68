// Matrix products against three loops.
#include "cpu/isa.hpp"
#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using Transpose = step::Gemm::Transpose;
class Gemm : public KernelTest {};

Values product(const step::Gemm& g, const Values& a, const Values& b, const Values& bias) {
    Values c;
    for (std::int64_t batch = 0; batch < g.batch; ++batch)
        for (std::int64_t i = 0; i < g.m; ++i)
            for (std::int64_t j = 0; j < g.n; ++j) {
                double sum = bias.empty() ? 0 : bias[j];
                for (std::int64_t k = 0; k < g.k; ++k) {
                    const std::int64_t at_a = g.a == Transpose::yes ? k * g.m + i : i * g.k + k;
                    const std::int64_t at_b = g.b == Transpose::yes ? j * g.k + k : k * g.n + j;
                    sum += static_cast<double>(a[batch * g.m * g.k + at_a]) * b[batch * g.k * g.n + at_b];
                }
                c.push_back(static_cast<float>(sum));
            }
    return c;
}

TEST_F(Gemm, equals_three_loops_for_all_transposes_batches_and_with_bias) {
    for (const std::int64_t batch : {1, 3})
        for (const auto ta : {Transpose::no, Transpose::yes})
            for (const auto tb : {Transpose::no, Transpose::yes})
                for (const bool has_bias : {false, true}) {
                    const step::Gemm g{batch, 5, 7, 11, ta, tb};
                    Tensor& a = tensor({batch, g.m, g.k}, normal_values(batch * g.m * g.k, 1));
                    Tensor& b = tensor({batch, g.k, g.n}, normal_values(batch * g.k * g.n, 2));
                    Tensor& bias = tensor({g.n}, normal_values(g.n, 3));
                    Tensor& c = tensor({batch, g.m, g.n});
                    std::vector<const Tensor*> in{&a, &b};
                    if (has_bias) in.push_back(&bias);
                    run(g, in, {out(c)});
                    expect_near(c.read(), product(g, a.read(), b.read(), has_bias ? bias.read() : Values{}), 1e-5F);
                }
}

TEST_F(Gemm, accumulates_over_micro_batches_but_starts_anew_in_the_first) {
    const step::Gemm g{1, 4, 6, 8, Transpose::yes, Transpose::no};
    Tensor& a = tensor({8, 4}, normal_values(32, 1));
    Tensor& b = tensor({8, 6}, normal_values(48, 2));
    Tensor& c = tensor({4, 6}, normal_values(24, 3));
    const auto kernel = make(g, {&a, &b}, {out(c, step::Access::accumulate_micro_batches)});
    kernel->run({0, 0});
    const Values once = c.read();
    expect_near(once, product(g, a.read(), b.read(), {}), 1e-5F);
    kernel->run({0, 1});
    Values twice = once;
    for (float& v : twice) v *= 2;
    expect_near(c.read(), twice, 1e-5F);
}

TEST_F(Gemm, multiplies_bf16_where_the_processor_does) {
    if (!has_native_bf16()) GTEST_SKIP() << "this CPU (" << isa_name() << ") has no bf16 products";
    const step::Gemm g{1, 16, 32, 64};
    Tensor& a = tensor({16, 64}, normal_values(1024, 1), Order::row_major, DType::bf16);
    Tensor& b = tensor({64, 32}, normal_values(2048, 2), Order::row_major, DType::bf16);
    Tensor& c = tensor({16, 32});
    run(g, {&a, &b}, {out(c)});
    expect_near(c.read(), product(g, a.read(), b.read(), {}), 1e-4F);
}

}  // namespace
}  // namespace lockstep::cpu::testing
