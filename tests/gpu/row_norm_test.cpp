// Layer and RMS norms, column sums and sums over positions beside the CPU's.
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using model::Norm;
using step::Access;
using step::Pass;

step::Norm norm_of(Norm::Kind kind, std::int64_t rows, std::int64_t features, Pass pass) {
    step::Norm op;
    op.kind = kind;
    op.rows = rows;
    op.features = features;
    op.pass = pass;
    return op;
}

void expect_both_passes(Norm::Kind kind, std::int64_t rows, std::int64_t features, DType type, DType parameter) {
    const bool is_layer = kind == Norm::Kind::layer;
    const Shape matrix{rows, features};
    Values values = normal_values(rows * features, 1, 2);
    for (float& x : values) x += 0.5F;
    const Slot x = slot(matrix, values, type), scale = slot({features}, normal_values(features, 2), parameter);
    Case forward{step::Compute{norm_of(kind, rows, features, Pass::forward)}, {x, scale}, {result(matrix, type)}};
    if (is_layer) {
        forward.in.push_back(slot({features}, normal_values(features, 3), parameter));
        forward.out.push_back(result({rows}));
    }
    forward.out.push_back(result({rows}));
    forward.tolerance = 2;
    expect_parity(forward);

    const std::vector<Values> statistics = run_on_cpu(forward)[0];
    Case backward{step::Compute{norm_of(kind, rows, features, Pass::backward_data)},
                  {slot(matrix, normal_values(rows * features, 4), type), x, scale},
                  {slot(matrix, normal_values(rows * features, 5), type), slot({features}, {}, parameter)},
                  {{0, 0}, {0, 1}}};
    for (std::size_t i = 1; i < statistics.size(); ++i) backward.in.push_back(slot({rows}, statistics[i]));
    if (is_layer) backward.out.push_back(slot({features}, {}, parameter));
    backward.out[0].access = Access::accumulate;
    for (std::size_t i = 1; i < backward.out.size(); ++i) backward.out[i].access = Access::accumulate_micro_batches;
    backward.tolerance = 4;
    expect_parity(backward);
}

TEST(GpuRowNorm, both_passes_of_layer_and_rms_norms_equal_the_cpus) {
    for (const Norm::Kind kind : {Norm::Kind::layer, Norm::Kind::rms})
        for (const DType type : float_types)
            for (const DType parameter : {type, DType::fp32})
                for (const std::int64_t features : {1, 13, 64, 1040})
                    expect_both_passes(kind, 5, features, type, parameter);
}

TEST(GpuRowNorm, many_rows_are_summed_in_chunks) {
    for (const DType type : float_types) {
        expect_both_passes(Norm::Kind::layer, 333, 24, type, DType::fp32);
        expect_both_passes(Norm::Kind::rms, 100, 7, type, DType::fp32);
    }
}

TEST(GpuRowNorm, tensors_that_begin_inside_a_pack_are_normalised_one_by_one) {
    Slot x = slot({3, 16}, normal_values(48, 1)), y = result({3, 16});
    x.skew = 1;
    expect_parity({step::Compute{norm_of(Norm::Kind::rms, 3, 16, Pass::forward)},
                   {x, slot({16}, normal_values(16, 2))},
                   {y, result({3})}});
}

TEST(GpuColumnSum, adds_rows_of_all_shapes) {
    for (const DType type : float_types)
        for (const DType sum : {type, DType::fp32})
            for (const auto [rows, columns] : {std::array{1, 1}, {5, 7}, {100, 8}, {1000, 64}, {37, 130}, {4, 2000}}) {
                Slot y = slot({columns}, normal_values(columns, 2), sum);
                y.access = Access::accumulate_micro_batches;
                expect_parity({step::Compute{step::ColumnSum{rows, columns}},
                               {slot({rows, columns}, normal_values(rows * columns, 1), type)},
                               {y},
                               {{0, 0}, {0, 1}},
                               MathType::fp32,
                               3});
            }
}

TEST(GpuPositionSum, rows_in_zigzag_are_added_at_their_position) {
    plan::Mesh mesh;
    mesh.cp = 2;
    for (const DType type : float_types)
        for (const DType table : {type, DType::fp32})
            for (const std::int64_t width : {5, 16})
                for (int rank = 0; rank < 2; ++rank) {
                    Slot dtable = slot({9, width}, normal_values(9 * width, 2), table);
                    dtable.access = Access::accumulate_micro_batches;
                    expect_parity({step::Compute{step::PositionSum{4, 3, width, 9}},
                                   {part({4, 3, width}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}}, mesh, rank,
                                         normal_values(8 * 3 * width, 1), type)},
                                   {dtable},
                                   {{0, 0}, {0, 1}},
                                   MathType::fp32,
                                   2});
                }
}

}  // namespace
}  // namespace lockstep::gpu::testing
