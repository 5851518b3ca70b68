// Dropout draws by global index: a split of a tensor sees the numbers of the whole.
#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using plan::Axis;
using step::Pass;
class Dropout : public KernelTest {
protected:
    struct Result {
        Values y, mask;
    };
    Result drop(Tensor& x, const Moment& moment) {
        Tensor& y = tensor(x.operand.shape, {}, x.operand.order);
        Tensor& mask = tensor(x.operand.shape, {}, x.operand.order, DType::uint8);
        y.operand.global = x.operand.global;
        y.operand.runs = x.operand.runs;
        run(step::Dropout{x.operand.elements(), 0.25, 5}, {&x}, {out(y), out(mask)}, moment);
        return {y.read(), mask.read()};
    }
    /// What the ranks of a mesh drop together.
    Values masks(const Shape& local, const std::vector<step::Shard>& shards, const plan::Mesh& mesh,
                 const Moment& moment) {
        Values whole;
        for (int rank = 0; rank < mesh.ranks(); ++rank) {
            Tensor& x = tensor(part(local, shards, mesh, rank));
            put(drop(x, moment).mask, x.operand, whole);
        }
        return whole;
    }
};

TEST_F(Dropout, keeps_three_quarters_scaled_by_four_thirds) {
    Tensor& x = tensor({40000}, Values(40000, 3));
    const Result r = drop(x, {});
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

TEST_F(Dropout, any_split_of_sequence_batch_and_width_drops_what_the_whole_drops) {
    const Moment moment{3, 1};
    const Values whole = drop(tensor({8, 6, 20}, Values(960, 1)), moment).mask;
    plan::Mesh mesh;
    mesh.tp = 2;
    EXPECT_EQ(masks({8, 6, 10}, {{2, Axis::tp}}, mesh, moment), whole);
    EXPECT_EQ(masks({4, 6, 20}, {{0, Axis::tp}}, mesh, moment), whole) << "sequence parallel";
    mesh.dp = 3;
    EXPECT_EQ(masks({8, 2, 10}, {{1, Axis::dp}, {2, Axis::tp}}, mesh, moment), whole);
    mesh.cp = 2;
    const auto zigzag = step::Shard::Order::zigzag;
    EXPECT_EQ(masks({4, 2, 10}, {{0, Axis::cp, zigzag}, {1, Axis::dp}, {2, Axis::tp}}, mesh, moment), whole);
}

TEST_F(Dropout, micro_batches_follow_one_another_and_steps_draw_anew) {
    const Values two = drop(tensor({4, 10}, Values(40, 1)), {}).y;
    Tensor& one = tensor({2, 10}, Values(20, 1));
    EXPECT_EQ(drop(one, {0, 1}).y, Values(two.begin() + 20, two.end()));
    EXPECT_NE(drop(one, {1, 0}).y, drop(one, {0, 0}).y);
}

TEST_F(Dropout, draws_do_not_depend_on_the_order_in_memory) {
    const Shape shape{2, 16, 3, 3};
    const Values plain = drop(tensor(shape, Values(288, 1)), {}).y;
    EXPECT_EQ(drop(tensor(shape, Values(288, 1), Order::channels_last), {}).y, plain);
    EXPECT_EQ(drop(tensor(shape, Values(288, 1), Order::blocked8), {}).y, plain);
}

}  // namespace
}  // namespace lockstep::cpu::testing
