// Dropout draws by global index: a split of a tensor sees the numbers of the whole.
#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using step::Pass;
class Dropout : public KernelTest {
protected:
    struct Result {
        Values y, mask;
    };
    Result drop(Tensor& x, std::int64_t first, std::int64_t per_pass, const Moment& moment) {
        Tensor& y = tensor(x.operand.shape, {}, x.operand.order);
        Tensor& mask = tensor(x.operand.shape, {}, x.operand.order, DType::uint8);
        y.operand.first_global = first;
        y.operand.per_micro_batch = per_pass;
        run(step::Dropout{x.operand.elements(), 0.25, 5}, {&x}, {out(y), out(mask)}, moment);
        return {y.read(), mask.read()};
    }
};

TEST_F(Dropout, keeps_three_quarters_scaled_by_four_thirds) {
    Tensor& x = tensor({40000}, Values(40000, 3));
    const Result r = drop(x, 0, 40000, {});
    double kept = 0;
    for (std::size_t i = 0; i < r.y.size(); ++i) {
        EXPECT_EQ(r.y[i], r.mask[i] != 0 ? 3.0F * (1.0F / 0.75F) : 0.0F);
        kept += r.mask[i];
    }
    EXPECT_NEAR(kept / 40000, 0.75, 4 * 0.00217);  // four standard deviations of sqrt(p (1 - p) / n)
    Tensor& mask = tensor({40000}, r.mask, Order::row_major, DType::uint8);
    Tensor& dx = tensor({40000});
    run(step::Dropout{40000, 0.25, 5, Pass::backward_data}, {&x, &mask}, {out(dx)});
    EXPECT_EQ(dx.read(), r.y);
}

TEST_F(Dropout, two_ranks_and_two_micro_batches_see_what_the_whole_sees) {
    Tensor& whole = tensor({4, 10}, Values(40, 1));
    Tensor& half = tensor({2, 10}, Values(20, 1));
    const Values all = drop(whole, 0, 40, {}).y;
    const Values rank1 = drop(half, 20, 40, {}).y, pass1 = drop(half, 0, 20, {0, 1}).y;
    EXPECT_EQ(rank1, Values(all.begin() + 20, all.end()));
    EXPECT_EQ(pass1, rank1);
    EXPECT_NE(drop(whole, 0, 40, {1, 0}).y, all) << "another step draws anew";
}

TEST_F(Dropout, draws_do_not_depend_on_the_order_in_memory) {
    const Shape shape{2, 16, 3, 3};
    const Values plain = drop(tensor(shape, Values(288, 1)), 0, 288, {}).y;
    EXPECT_EQ(drop(tensor(shape, Values(288, 1), Order::channels_last), 0, 288, {}).y, plain);
    EXPECT_EQ(drop(tensor(shape, Values(288, 1), Order::blocked8), 0, 288, {}).y, plain);
}

}  // namespace
}  // namespace lockstep::cpu::testing
