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

step::Elementwise rows(Kind kind, std::int64_t count, std::int64_t width, std::int64_t batch) {
    step::Elementwise op;
    op.kind = kind;
    op.count = count;
    op.width = width;
    op.batch = batch;
    return op;
}

TEST_F(Elementwise, add_positions_adds_the_table_row_of_the_position) {
    step::Elementwise op = rows(Kind::add_positions, 8, 2, 2);
    op.positions = 3;
    Tensor& x = tensor({2, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3});
    Tensor& table = tensor({3, 2}, {10, 20, 30, 40, 50, 60});
    Tensor& y = tensor({2, 2, 2});
    run(op, {&x, &table}, {out(y)});
    EXPECT_EQ(y.read(), (Values{10, 20, 11, 21, 32, 42, 33, 43}));
    op.positions = 1;
    EXPECT_THROW(make(op, {&x, &table}, {out(y)}), LogicError);
}

TEST_F(Elementwise, positions_of_a_part_are_those_of_the_whole_sequence) {
    // 8 positions over 2 ranks in zigzag: rank 1 has 2 to 5. The gradient's table is zero elsewhere.
    plan::Mesh mesh;
    mesh.cp = 2;
    const Operand place = part({4, 3, 1}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}}, mesh, 1);
    Tensor& x = tensor(place);
    Tensor& table = tensor({8, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
    Tensor& y = tensor(place);
    step::Elementwise op = rows(Kind::add_positions, 12, 1, 3);
    op.positions = 8;
    run(op, {&x, &table}, {out(y)});
    EXPECT_EQ(y.read(), (Values{2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5}));
    Tensor& dtable = tensor({8, 1}, Values(8, 1));
    const auto sum = make(step::PositionSum{4, 3, 1, 8}, {&y}, {out(dtable, step::Access::accumulate_micro_batches)});
    sum->run({0, 0});
    EXPECT_EQ(dtable.read(), (Values{0, 0, 6, 9, 12, 15, 0, 0}));
    sum->run({0, 1});
    EXPECT_EQ(dtable.read(), (Values{0, 0, 12, 18, 24, 30, 0, 0}));
}

TEST_F(Elementwise, add_bias_adds_one_row_to_all) {
    Tensor& x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
    Tensor& bias = tensor({3}, {10, 20, 30});
    Tensor& y = tensor({2, 3});
    run(rows(Kind::add_bias, 6, 3, 1), {&x, &bias}, {out(y)});
    EXPECT_EQ(y.read(), (Values{11, 22, 33, 14, 25, 36}));
}

TEST_F(Elementwise, gated_activation_and_its_gradient) {
    step::Elementwise op;
    op.width = 5;
    const Values x = normal_values(20, 1), dy = normal_values(10, 2);
    const auto exact = [](const Values& v) {
        Values y;
        for (std::size_t i = 0; i < v.size(); i += 2) {
            const double gate = v[i];
            y.push_back(static_cast<float>(gate / (1 + std::exp(-gate)) * v[i + 1]));
        }
        return y;
    };
    expect_near(apply(Kind::gated, {x}, 10, op), exact(x), 1e-6F);
    expect_near(apply(Kind::gated_backward, {dy, x}, 20, op), numeric_gradient(x, dy, exact), 1e-3F);
}

TEST_F(Elementwise, rotary_turns_pairs_by_position_and_its_backward_turns_them_back) {
    // One group: a query head of 4, its key and its value: position 1 turns (x0, x2) by 1 and (x1, x3) by 1/100.
    step::Elementwise op = rows(Kind::rotary, 24, 12, 1);
    op.rotary = {1, 1, 4, 10000};
    const Values x = normal_values(24, 1);
    Tensor& in = tensor({2, 1, 12}, x);
    Tensor& turned = tensor({2, 1, 12});
    run(op, {&in}, {out(turned)});
    const Values y = turned.read();
    for (int i = 0; i < 12; ++i) EXPECT_EQ(y[i], x[i]) << "position 0 does not turn";
    for (const int head : {12, 16}) {
        EXPECT_NEAR(y[head], x[head] * std::cos(1.0) - x[head + 2] * std::sin(1.0), 1e-5);
        EXPECT_NEAR(y[head + 2], x[head] * std::sin(1.0) + x[head + 2] * std::cos(1.0), 1e-5);
        EXPECT_NEAR(y[head + 1], x[head + 1] * std::cos(0.01) - x[head + 3] * std::sin(0.01), 1e-5);
    }
    for (int i = 20; i < 24; ++i) EXPECT_EQ(y[i], x[i]) << "values do not turn";
    op.kind = Kind::rotary_backward;
    Tensor& back = tensor({2, 1, 12});
    run(op, {&turned}, {out(back)});
    expect_near(back.read(), x, 1e-6F);
}

TEST_F(Elementwise, rotary_of_parts_of_sequence_batch_and_heads_equals_that_of_the_whole) {
    step::Elementwise op = rows(Kind::rotary, 8 * 4 * 32, 32, 4);
    op.rotary = {4, 2, 4, 100};  // two groups of two queries, key and value
    const Values x = normal_values(op.count, 1);
    Tensor& in = tensor({8, 4, 32}, x);
    Tensor& whole = tensor({8, 4, 32});
    run(op, {&in}, {out(whole)});
    plan::Mesh mesh;
    mesh.tp = mesh.cp = mesh.dp = 2;
    step::Elementwise mine = rows(Kind::rotary, 4 * 2 * 16, 16, 2);
    mine.rotary = {2, 1, 4, 100};
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
        const Operand place = part(
            {4, 2, 16}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}, {1, plan::Axis::dp}, {2, plan::Axis::tp}},
            mesh, rank);
        Tensor& y = tensor(place);
        run(mine, {&tensor(place, x)}, {out(y)});
        EXPECT_EQ(y.read(), take(whole.read(), place));
    }
}

}  // namespace
}  // namespace lockstep::cpu::testing
