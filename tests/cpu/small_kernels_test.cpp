// Embedding, first token, column sums, loss, copies, loss scaling: values worked out by hand.
#include <cmath>
#include <limits>

#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using step::Access;
using step::Pass;
class SmallKernels : public KernelTest {};

TEST_F(SmallKernels, embedding_looks_up_rows_and_its_gradient_adds_equal_ids) {
    Tensor& ids = tensor({3}, {2, 0, 2}, Order::row_major, DType::int32);
    Tensor& table = tensor({3, 2}, {1, 2, 3, 4, 5, 6});
    Tensor& y = tensor({3, 2});
    run(step::Embedding{3, 3, 2}, {&ids, &table}, {out(y)});
    EXPECT_EQ(y.read(), (Values{5, 6, 1, 2, 5, 6}));
    Tensor& dy = tensor({3, 2}, {1, 1, 10, 10, 100, 100});
    Tensor& dtable = tensor({3, 2}, {9, 9, 9, 9, 9, 9});
    const auto kernel = make(step::Embedding{3, 3, 2, Pass::backward_weights}, {&dy, &ids},
                             {out(dtable, Access::accumulate_micro_batches)});
    kernel->run({0, 0});
    EXPECT_EQ(dtable.read(), (Values{10, 10, 0, 0, 101, 101}));
    kernel->run({0, 1});
    EXPECT_EQ(dtable.read(), (Values{20, 20, 0, 0, 202, 202}));
}

TEST_F(SmallKernels, first_token_takes_and_returns_position_0) {
    Tensor& x = tensor({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    Tensor& y = tensor({2, 2});
    run(step::FirstToken{2, 2, 2}, {&x}, {out(y)});
    EXPECT_EQ(y.read(), (Values{1, 2, 5, 6}));
    Tensor& dx = tensor({2, 2, 2}, Values(8, 9));
    run(step::FirstToken{2, 2, 2, Pass::backward_data}, {&y}, {out(dx)});
    EXPECT_EQ(dx.read(), (Values{1, 2, 0, 0, 5, 6, 0, 0}));
}

TEST_F(SmallKernels, column_sum_adds_rows) {
    const Values x = normal_values(7 * 130, 1);
    Tensor& in = tensor({7, 130}, x);
    Tensor& y = tensor({130}, Values(130, 1));
    run(step::ColumnSum{7, 130}, {&in}, {out(y, Access::accumulate)});
    Values expected(130, 1);
    for (int r = 0; r < 7; ++r)
        for (int c = 0; c < 130; ++c) expected[c] += x[r * 130 + c];
    expect_near(y.read(), expected, 1e-5F);
}

TEST_F(SmallKernels, loss_is_the_mean_cross_entropy_and_its_gradient_softmax_minus_one_hot) {
    // Equal logits of 4 classes: loss log 4; gradient (1/4 - [label]) / rows.
    Tensor& logits = tensor({2, 4}, Values(8, 3));
    Tensor& labels = tensor({2}, {1, 3}, Order::row_major, DType::int32);
    Tensor& loss = tensor({1}, {5});
    Tensor& lse = tensor({2});
    const auto kernel = make(step::SoftmaxLoss{2, 4, 0.25}, {&logits, &labels},
                             {out(loss, Access::accumulate_micro_batches), out(lse)});
    kernel->run({0, 0});
    kernel->run({0, 1});
    expect_near(loss.read(), {std::log(4.0F)}, 1e-6F);
    expect_near(lse.read(), Values(2, 3 + std::log(4.0F)), 1e-6F);
    Tensor& dlogits = tensor({2, 4});
    Tensor& scale = tensor({1}, {8});
    run(step::SoftmaxLoss{2, 4, 0.25, Pass::backward_data}, {&logits, &labels, &lse, &scale}, {out(dlogits)});
    expect_near(dlogits.read(), {0.5F, -1.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, -1.5F}, 1e-6F);
}

TEST_F(SmallKernels, loss_gradient_equals_central_differences) {
    const Values x = normal_values(3 * 40, 1, 2);
    Tensor& labels = tensor({3}, {7, 0, 39}, Order::row_major, DType::int32);
    Tensor& lse = tensor({3});
    const auto loss_at = [&](const Values& v) {
        Tensor& logits = tensor({3, 40}, v);
        Tensor& loss = tensor({1});
        run(step::SoftmaxLoss{3, 40, 1.0 / 3}, {&logits, &labels}, {out(loss), out(lse)});
        return loss.read();
    };
    const Values expected = numeric_gradient(x, {1}, loss_at, 3e-2F);
    loss_at(x);
    Tensor& logits = tensor({3, 40}, x);
    Tensor& dlogits = tensor({3, 40});
    run(step::SoftmaxLoss{3, 40, 1.0 / 3, Pass::backward_data}, {&logits, &labels, &lse}, {out(dlogits)});
    expect_near(dlogits.read(), expected, 1e-4F);
}

TEST_F(SmallKernels, copies_scale_and_cast_and_fills_fill) {
    Tensor& x = tensor({3}, {1, 2, 3.001F});
    Tensor& y = tensor({3}, {}, Order::row_major, DType::bf16);
    step::Op op;
    op.kind = step::Copy{step::Copy::Kind::bucket_in, 3, 0.5, Seconds{}};
    Operands operands;
    operands.in = {x.operand};
    operands.out = {out(y)};
    make_kernel(op, operands, {library_, 1})->run({});
    EXPECT_EQ(y.read(), (Values{0.5, 1, 1.5}));
    Tensor& z = tensor({3}, {1, 1, 1});
    run(step::Cast{3}, {&y}, {out(z, Access::accumulate)});
    EXPECT_EQ(z.read(), (Values{1.5, 2, 2.5}));
    run(step::Fill{3, 4}, {}, {out(z)});
    EXPECT_EQ(z.read(), (Values{4, 4, 4}));
}

TEST_F(SmallKernels, loss_scale_halves_on_overflow_and_doubles_after_2000_good_steps) {
    Tensor& good = tensor({2}, {1, 2});
    Tensor& bad = tensor({2}, {1, -std::numeric_limits<float>::infinity()});
    Tensor& found = tensor({1});
    run(step::FoundInf{4}, {&good, &bad}, {out(found)});
    EXPECT_EQ(found.read(), Values{1});
    Tensor& scale = tensor({1}, {1024});
    Tensor& tracker = tensor({1}, {7});
    const auto update =
        make(step::UpdateLossScale{}, {&found}, {out(scale, Access::update), out(tracker, Access::update)});
    update->run({});
    EXPECT_EQ(scale.read(), Values{512});
    EXPECT_EQ(tracker.read(), Values{0});
    run(step::FoundInf{2}, {&good}, {out(found)});
    for (int i = 0; i < 1999; ++i) update->run({});
    EXPECT_EQ(scale.read(), Values{512});
    update->run({});
    EXPECT_EQ(scale.read(), Values{1024});
}

TEST_F(SmallKernels, sgd_keeps_momentum) {
    // g = 1: v = 1, p = 1 - 0.1; then v = 1.9, p = 0.9 - 0.19 = 0.71 (momentum 0.9, rate 0.1).
    Tensor& g = tensor({1}, {1});
    Tensor& p = tensor({1}, {1});
    Tensor& v = tensor({1});
    step::OptimizerUpdate op{plan::Optimizer::sgd_momentum, 1, 1, 0.1};
    const auto kernel = make(op, {&g}, {out(p, Access::update), out(v, Access::update)});
    kernel->run({0, 0});
    kernel->run({1, 0});
    expect_near(p.read(), {0.71F}, 1e-6F);
    expect_near(v.read(), {1.9F}, 1e-6F);
}

TEST_F(SmallKernels, adam_moves_by_the_rate_whatever_the_gradient_and_skips_overflown_steps) {
    // The first step's corrected moments are g and g^2, so that p moves by rate g / |g|.
    Tensor& g = tensor({2}, {0.5F, -200});
    Tensor& p = tensor({2}, {1, 1}, Order::row_major, DType::bf16);
    Tensor& m = tensor({2});
    Tensor& v = tensor({2});
    Tensor& master = tensor({2}, {1, 1});
    Tensor& found = tensor({1}, {1});
    Tensor& scale = tensor({1}, {4});
    step::OptimizerUpdate op{plan::Optimizer::adam, 1, 2, 0.25, 1, true, true};
    const auto kernel =
        make(op, {&g, &found, &scale},
             {out(p, Access::update), out(m, Access::update), out(v, Access::update), out(master, Access::update)});
    kernel->run({0, 0});
    EXPECT_EQ(master.read(), (Values{1, 1}));
    found.write({0});
    kernel->run({1, 0});
    expect_near(master.read(), {0.75F, 1.25F}, 1e-5F);
    expect_near(p.read(), {0.75F, 1.25F}, 4e-3F);
    expect_near(m.read(), {0.1F * 0.125F, -0.1F * 50}, 1e-5F);
}

}  // namespace
}  // namespace lockstep::cpu::testing
