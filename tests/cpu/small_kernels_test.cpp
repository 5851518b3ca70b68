// Embedding, first token, column sums, loss, copies, loss scaling: values worked out by hand.
#include <cmath>
#include <limits>

#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using step::Access;
using step::Pass;
class SmallKernels : public KernelTest {};

step::SoftmaxLoss loss_op(std::int64_t rows, std::int64_t classes, double scale, Pass pass = Pass::forward) {
    step::SoftmaxLoss op;
    op.rows = rows;
    op.classes = classes;
    op.gradient_scale = scale;
    op.pass = pass;
    return op;
}

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

TEST_F(SmallKernels, ranks_with_parts_of_a_table_look_up_and_learn_what_the_whole_does) {
    const Values table = normal_values(12 * 3, 1), dy = normal_values(5 * 3, 2), ids{7, 0, 11, 7, 4};
    Tensor& id = tensor({5}, ids, Order::row_major, DType::int32);
    Tensor& whole = tensor({5, 3});
    run(step::Embedding{5, 12, 3}, {&id, &tensor({12, 3}, table)}, {out(whole)});
    Tensor& gradient = tensor({5, 3}, dy);
    Tensor& dwhole = tensor({12, 3});
    run(step::Embedding{5, 12, 3, Pass::backward_weights}, {&gradient, &id}, {out(dwhole)});
    plan::Mesh mesh;
    mesh.tp = 3;
    Values sum(15, 0), dtable;
    for (int rank = 0; rank < 3; ++rank) {
        const Operand place = part({4, 3}, {{0, plan::Axis::tp}}, mesh, rank);
        Tensor& y = tensor({5, 3}, Values(15, 9));
        run(step::Embedding{5, 4, 3}, {&id, &tensor(place, table)}, {out(y)});
        const Values mine = y.read();
        for (std::size_t i = 0; i < 15; ++i) sum[i] += mine[i];
        Tensor& d = tensor(place);
        run(step::Embedding{5, 4, 3, Pass::backward_weights}, {&gradient, &id}, {out(d)});
        put(d.read(), place, dtable);
    }
    EXPECT_EQ(sum, whole.read()) << "an all-reduce of what each rank has, zeros elsewhere";
    EXPECT_EQ(dtable, dwhole.read());
}

TEST_F(SmallKernels, first_token_takes_and_returns_position_0) {
    Tensor& x = tensor({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});  // [seq, batch, width]
    Tensor& y = tensor({2, 2});
    run(step::FirstToken{2, 2, 2}, {&x}, {out(y)});
    EXPECT_EQ(y.read(), (Values{1, 2, 3, 4}));
    Tensor& dx = tensor({2, 2, 2}, Values(8, 9));
    run(step::FirstToken{2, 2, 2, Pass::backward_data}, {&y}, {out(dx)});
    EXPECT_EQ(dx.read(), (Values{1, 2, 3, 4, 0, 0, 0, 0}));
}

TEST_F(SmallKernels, first_token_of_later_positions_is_refused) {
    plan::Mesh mesh;
    mesh.cp = 2;
    Tensor& later = tensor(part({2, 2, 2}, {{0, plan::Axis::cp}}, mesh, 1));
    Tensor& y = tensor({2, 2});
    EXPECT_THROW(make(step::FirstToken{2, 2, 2}, {&later}, {out(y)}), LogicError);
}

TEST_F(SmallKernels, block_transpose_exchanges_rows_and_blocks) {
    Tensor& x = tensor({2, 3, 2}, {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121});
    Tensor& y = tensor({3, 2, 2});
    run(step::BlockTranspose{2, 3, 2}, {&x}, {out(y)});
    EXPECT_EQ(y.read(), (Values{0, 1, 100, 101, 10, 11, 110, 111, 20, 21, 120, 121}));
    Tensor& back = tensor({2, 3, 2});
    run(step::BlockTranspose{3, 2, 2}, {&y}, {out(back)});
    EXPECT_EQ(back.read(), x.read());
}

TEST_F(SmallKernels, slice_takes_columns_and_puts_their_gradient_back_among_the_others) {
    Tensor& x = tensor({2, 4}, {0, 1, 2, 3, 10, 11, 12, 13});
    Tensor& y = tensor({2, 2});
    run(step::Slice{2, 4, 1, 2}, {&x}, {out(y)});
    EXPECT_EQ(y.read(), (Values{1, 2, 11, 12}));
    Tensor& dx = tensor({2, 4}, Values(8, 7));
    run(step::Slice{2, 4, 1, 2, Pass::backward_data}, {&y}, {out(dx, Access::update)});
    EXPECT_EQ(dx.read(), (Values{7, 1, 2, 7, 7, 11, 12, 7}));
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
    const auto kernel =
        make(loss_op(2, 4, 0.25), {&logits, &labels}, {out(loss, Access::accumulate_micro_batches), out(lse)});
    kernel->run({0, 0});
    kernel->run({0, 1});
    expect_near(loss.read(), {std::log(4.0F)}, 1e-6F);
    expect_near(lse.read(), Values(2, 3 + std::log(4.0F)), 1e-6F);
    Tensor& dlogits = tensor({2, 4});
    Tensor& scale = tensor({1}, {8});
    run(loss_op(2, 4, 0.25, Pass::backward_data), {&logits, &labels, &lse, &scale}, {out(dlogits)});
    expect_near(dlogits.read(), {0.5F, -1.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, -1.5F}, 1e-6F);
}

TEST_F(SmallKernels, loss_gradient_equals_central_differences) {
    const Values x = normal_values(3 * 40, 1, 2);
    Tensor& labels = tensor({3}, {7, 0, 39}, Order::row_major, DType::int32);
    Tensor& lse = tensor({3});
    const auto loss_at = [&](const Values& v) {
        Tensor& logits = tensor({3, 40}, v);
        Tensor& loss = tensor({1});
        run(loss_op(3, 40, 1.0 / 3), {&logits, &labels}, {out(loss), out(lse)});
        return loss.read();
    };
    const Values expected = numeric_gradient(x, {1}, loss_at, 3e-2F);
    loss_at(x);
    Tensor& logits = tensor({3, 40}, x);
    Tensor& dlogits = tensor({3, 40});
    run(loss_op(3, 40, 1.0 / 3, Pass::backward_data), {&logits, &labels, &lse}, {out(dlogits)});
    expect_near(dlogits.read(), expected, 1e-4F);
}

/// What the ranks that share the classes compute, with the all-reduces between the parts.
struct SplitLoss {
    Values loss, lse, dlogits;
};
class VocabularyParallelLoss : public KernelTest {
protected:
    SplitLoss split(int ranks, std::int64_t rows, std::int64_t classes, const Values& x, const Values& label_values) {
        using Part = step::SoftmaxLoss::Part;
        plan::Mesh mesh;
        mesh.tp = ranks;
        step::SoftmaxLoss op = loss_op(rows, classes / ranks, 1.0 / static_cast<double>(rows));
        Tensor& labels = tensor({rows}, label_values, Order::row_major, DType::int32);
        Values largest(static_cast<std::size_t>(rows), -1e30F), sums(static_cast<std::size_t>(2 * rows), 0);
        std::vector<Tensor*> logits;
        Tensor& row = tensor({rows});
        Tensor& two = tensor({2, rows});
        op.part = Part::row_max;
        for (int r = 0; r < ranks; ++r) {
            logits.push_back(&tensor(part({rows, classes / ranks}, {{1, plan::Axis::tp}}, mesh, r), x));
            run(op, {logits.back()}, {out(row)});
            const Values mine = row.read();
            for (std::size_t i = 0; i < mine.size(); ++i) largest[i] = std::max(largest[i], mine[i]);
        }
        op.part = Part::row_sums;
        row.write(largest);
        for (const Tensor* t : logits) {
            run(op, {t, &labels, &row}, {out(two)});
            const Values mine = two.read();
            for (std::size_t i = 0; i < mine.size(); ++i) sums[i] += mine[i];
        }
        op.part = Part::finish;
        two.write(sums);
        Tensor& loss = tensor({1}, {5});
        Tensor& lse = tensor({rows});
        run(op, {&row, &two}, {out(loss, Access::accumulate_micro_batches), out(lse)});
        op.part = Part::whole;
        op.pass = Pass::backward_data;
        Values dlogits;
        for (const Tensor* t : logits) {
            Tensor& d = tensor(t->operand, Values{});
            run(op, {t, &labels, &lse}, {out(d)});
            put(d.read(), t->operand, dlogits);
        }
        return {loss.read(), lse.read(), dlogits};
    }
};

TEST_F(VocabularyParallelLoss, equals_the_loss_of_all_classes_and_its_gradient) {
    const Values x = normal_values(6 * 40, 1, 3), label_values{0, 9, 10, 39, 20, 33};
    Tensor& logits = tensor({6, 40}, x);
    Tensor& labels = tensor({6}, label_values, Order::row_major, DType::int32);
    Tensor& loss = tensor({1});
    Tensor& lse = tensor({6});
    Tensor& dlogits = tensor({6, 40});
    run(loss_op(6, 40, 1.0 / 6), {&logits, &labels}, {out(loss), out(lse)});
    run(loss_op(6, 40, 1.0 / 6, Pass::backward_data), {&logits, &labels, &lse}, {out(dlogits)});
    for (const int ranks : {2, 4}) {
        const SplitLoss parts = split(ranks, 6, 40, x, label_values);
        expect_near(parts.loss, loss.read(), 1e-6F);
        expect_near(parts.lse, lse.read(), 1e-6F);
        expect_near(parts.dlogits, dlogits.read(), 1e-6F);
    }
}

TEST_F(VocabularyParallelLoss, some_of_the_classes_alone_are_refused) {
    plan::Mesh mesh;
    mesh.tp = 2;
    Tensor& logits = tensor(part({2, 4}, {{1, plan::Axis::tp}}, mesh, 1));
    Tensor& labels = tensor({2}, {1, 3}, Order::row_major, DType::int32);
    Tensor& loss = tensor({1});
    Tensor& lse = tensor({2});
    EXPECT_THROW(make(loss_op(2, 4, 1), {&logits, &labels}, {out(loss), out(lse)}), LogicError);
}

TEST_F(SmallKernels, a_cast_to_the_same_type_copies_in_the_first_micro_batch_and_adds_later) {
    Tensor& x = tensor({3}, {1, 2, 3});
    Tensor& y = tensor({3}, {9, 9, 9});
    const auto kernel = make(step::Cast{3}, {&x}, {out(y, Access::accumulate_micro_batches)});
    kernel->run({0, 0});
    EXPECT_EQ(y.read(), (Values{1, 2, 3}));
    kernel->run({0, 1});
    EXPECT_EQ(y.read(), (Values{2, 4, 6}));
}

TEST_F(SmallKernels, waits_and_syncs_compute_nothing) {
    Tensor& x = tensor({1}, {4});
    for (const step::OpKind& kind : {step::OpKind{step::StreamWait{}}, step::OpKind{step::HostSync{}}}) {
        step::Op op;
        op.kind = kind;
        Operands operands;
        operands.in = {x.operand};
        make_kernel(op, operands, {library_, 1})->run({});
        EXPECT_EQ(x.read(), Values{4});
    }
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
