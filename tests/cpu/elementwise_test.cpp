// Elementwise ops against the C++ library; gradients by central differences.
#include <cmath>

#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using Kind = step::Elementwise::Kind;
class Elementwise : public KernelTest {
protected:
    Values apply(Kind kind, const std::vector<Values>& inputs, std::int64_t n, step::Elementwise op = {},
                 DType dtype = DType::fp32) {
        std::vector<const Tensor*> in;
        for (const Values& v : inputs)
            in.push_back(&tensor({static_cast<std::int64_t>(v.size())}, v, Order::row_major, dtype));
        Tensor& y = tensor({n}, {}, Order::row_major, dtype);
        op.kind = kind;
        op.count = n;
        run(op, in, {out(y)});
        return y.read();
    }
};

Values map(const Values& x, double (*f)(double)) {
    Values y;
    for (const float v : x) y.push_back(static_cast<float>(f(v)));
    return y;
}

struct Function {
    Kind kind, backward;
    double (*exact)(double);
    bool backward_takes_output;
};
const std::vector<Function> functions{
    {Kind::relu, Kind::relu_backward, [](double x) { return x > 0 ? x : 0; }, true},
    {Kind::gelu, Kind::gelu_backward, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, false},
    {Kind::silu, Kind::silu_backward, [](double x) { return x / (1 + std::exp(-x)); }, false},
    {Kind::tanh, Kind::tanh_backward, [](double x) { return std::tanh(x); }, true}};

TEST_F(Elementwise, activations_equal_the_library_from_tiny_to_huge_arguments) {
    Values x = normal_values(300, 1, 3);
    x.insert(x.end(), {0, 1e-6F, -1e-6F, 1e-30F, 50, -50, 1e4F, -1e4F});
    for (const Function& f : functions)
        expect_near(apply(f.kind, {x}, static_cast<std::int64_t>(x.size())), map(x, f.exact), 1e-6F);
}

TEST_F(Elementwise, gradients_of_activations_equal_central_differences) {
    const Values x = normal_values(100, 1), dy = normal_values(100, 2);
    for (const Function& f : functions) {
        if (f.kind == Kind::relu) continue;  // has no derivative at 0; below
        const Values saved = f.backward_takes_output ? map(x, f.exact) : x;
        expect_near(apply(f.backward, {dy, saved}, 100),
                    numeric_gradient(x, dy, [&](const Values& v) { return map(v, f.exact); }), 1e-3F);
    }
    EXPECT_EQ(apply(Kind::relu_backward, {{5, 6, 7}, {0, 2, 0}}, 3), (Values{0, 6, 0}));
}

TEST_F(Elementwise, add_and_scale) {
    EXPECT_EQ(apply(Kind::add, {{1, 2, 3}, {10, 20, 30}}, 3), (Values{11, 22, 33}));
    step::Elementwise half;
    half.factor = 0.5;
    EXPECT_EQ(apply(Kind::scale, {{1, 2, 3}}, 3, half), (Values{0.5, 1, 1.5}));
}

TEST_F(Elementwise, bf16_results_are_the_nearest_bf16_ties_to_even) {
    // 1 + 2^-8 lies between 1 and 1 + 2^-7 (even mantissa: 1); 1 + 3 2^-8 between 1 + 2^-7 and 1 + 2^-6 (even: the
    // latter).
    const Values sum = apply(Kind::add, {{1, 1}, {0x1p-8F, 0x3p-8F}}, 2, {}, DType::bf16);
    EXPECT_EQ(sum, (Values{1, 1 + 0x1p-6F}));
}

TEST_F(Elementwise, add_rows_adds_the_table_row_of_the_position) {
    step::Elementwise op;
    op.width = 2;
    op.seq = 2;
    EXPECT_EQ(apply(Kind::add_rows, {{0, 0, 1, 1, 2, 2, 3, 3}, {10, 20, 30, 40}}, 8, op),
              (Values{10, 20, 31, 41, 12, 22, 33, 43}));
}

TEST_F(Elementwise, gated_activation_and_its_gradient) {
    step::Elementwise op;
    op.width = 5;
    const Values x = normal_values(20, 1), dy = normal_values(10, 2);
    const auto exact = [](const Values& v) {
        Values y;
        for (int r = 0; r < 2; ++r)
            for (int i = 0; i < 5; ++i) {
                const double gate = v[r * 10 + i];
                y.push_back(static_cast<float>(gate / (1 + std::exp(-gate)) * v[r * 10 + 5 + i]));
            }
        return y;
    };
    expect_near(apply(Kind::gated, {x}, 10, op), exact(x), 1e-6F);
    expect_near(apply(Kind::gated_backward, {dy, x}, 20, op), numeric_gradient(x, dy, exact), 1e-3F);
}

TEST_F(Elementwise, rotary_turns_pairs_by_position_and_its_backward_turns_them_back) {
    // One head of 4 beside one key head and one value head: position 1 turns (x0, x2) by 1 and (x1, x3) by 1/100.
    step::Elementwise op;
    op.width = 12;
    op.seq = 2;
    op.rotary = {1, 1, 4, 10000};
    const Values x = normal_values(24, 1);
    const Values y = apply(Kind::rotary, {x}, 24, op);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(y[i], x[i]) << "position 0 does not turn";
    for (const int head : {12, 16}) {
        EXPECT_NEAR(y[head], x[head] * std::cos(1.0) - x[head + 2] * std::sin(1.0), 1e-5);
        EXPECT_NEAR(y[head + 2], x[head] * std::sin(1.0) + x[head + 2] * std::cos(1.0), 1e-5);
        EXPECT_NEAR(y[head + 1], x[head + 1] * std::cos(0.01) - x[head + 3] * std::sin(0.01), 1e-5);
    }
    for (int i = 20; i < 24; ++i) EXPECT_EQ(y[i], x[i]) << "values do not turn";
    expect_near(apply(Kind::rotary_backward, {y}, 24, op), x, 1e-6F);
}

}  // namespace
}  // namespace lockstep::cpu::testing
