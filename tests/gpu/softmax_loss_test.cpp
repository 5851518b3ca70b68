// The loss and its gradient beside the CPU's, whole and with the classes split over ranks.
#include "base/error.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using step::Pass;
using Part = step::SoftmaxLoss::Part;

step::SoftmaxLoss loss_of(std::int64_t rows, std::int64_t classes, Part part = Part::whole, Pass pass = Pass::forward) {
    step::SoftmaxLoss op;
    op.part = part;
    op.rows = rows;
    op.classes = classes;
    op.gradient_scale = 1.0 / static_cast<double>(2 * rows);
    op.pass = pass;
    return op;
}
Slot labels_of(std::int64_t rows, std::int64_t classes) {
    Values labels;
    for (std::int64_t r = 0; r < rows; ++r) labels.push_back(static_cast<float>((r * 37 + 1) % classes));
    return slot({rows}, labels, DType::int32);
}
Slot accumulated(Shape shape) { return result(std::move(shape), DType::fp32, Access::accumulate_micro_batches); }

TEST(GpuSoftmaxLoss, loss_and_log_sum_exp_of_rows_of_any_length_equal_the_cpus) {
    for (const DType type : float_types)
        for (const auto [rows, classes] : {std::array{1, 1}, {3, 2}, {40, 10}, {33, 1000}, {5, 2051}})
            expect_parity({step::Compute{loss_of(rows, classes)},
                           {slot({rows, classes}, normal_values(rows * classes, 1, 8), type), labels_of(rows, classes)},
                           {accumulated({1}), result({rows})},
                           {{0, 0}, {0, 1}, {1, 0}},
                           MathType::fp32,
                           2});
}

TEST(GpuSoftmaxLoss, the_gradient_is_softmax_minus_one_hot_with_and_without_a_loss_scale) {
    for (const DType type : float_types)
        for (const auto [rows, classes] : {std::array{3, 2}, {40, 10}, {7, 1001}}) {
            const Slot logits = slot({rows, classes}, normal_values(rows * classes, 1, 4), type);
            const Values lse = run_on_cpu({step::Compute{loss_of(rows, classes)},
                                           {logits, labels_of(rows, classes)},
                                           {accumulated({1}), result({rows})}})[0][1];
            Case c{step::Compute{loss_of(rows, classes, Part::whole, Pass::backward_data)},
                   {logits, labels_of(rows, classes), slot({rows}, lse)},
                   {result({rows, classes}, type)}};
            expect_parity(c);
            c.in.push_back(slot({1}, {1024}));
            expect_parity(c);
        }
}

TEST(GpuSoftmaxLoss, ranks_with_some_of_the_classes_compute_the_cpus_parts) {
    constexpr std::int64_t rows = 9, classes = 22, mine = 11;
    plan::Mesh mesh;
    mesh.tp = 2;
    const Values whole = normal_values(rows * classes, 1, 4), largest = normal_values(rows, 2);
    Values sums = normal_values(2 * rows, 3);
    for (float& sum : sums) sum = 1 + std::abs(sum);
    for (const DType type : float_types)
        for (int rank = 0; rank < 2; ++rank) {
            const Slot logits = part({rows, mine}, {{1, plan::Axis::tp}}, mesh, rank, whole, type);
            const Slot labels = labels_of(rows, classes);
            expect_parity({step::Compute{loss_of(rows, mine, Part::row_max)}, {logits}, {result({rows})}});
            expect_parity({step::Compute{loss_of(rows, mine, Part::row_sums)},
                           {logits, labels, slot({rows}, largest)},
                           {result({2, rows})}});
            expect_parity({step::Compute{loss_of(rows, mine, Part::whole, Pass::backward_data)},
                           {logits, labels, slot({rows}, Values(rows, 9))},
                           {result({rows, mine}, type)}});
            EXPECT_THROW(
                run_on_gpu({step::Compute{loss_of(rows, mine)}, {logits, labels}, {accumulated({1}), result({rows})}}),
                LogicError);
        }
    expect_parity({step::Compute{loss_of(rows, mine, Part::finish)},
                   {slot({rows}, largest), slot({2, rows}, sums)},
                   {accumulated({1}), result({rows})},
                   {{0, 0}, {0, 1}}});
}

}  // namespace
}  // namespace lockstep::gpu::testing
