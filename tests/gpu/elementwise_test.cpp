// Activations, sums, rows with biases and positions, gated activations and rotary embeddings beside the CPU's.
#include "base/error.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using Kind = step::Elementwise::Kind;

step::Elementwise op_of(Kind kind, std::int64_t count, std::int64_t width = 0, double factor = 1) {
    step::Elementwise op;
    op.kind = kind;
    op.count = count;
    op.width = width;
    op.factor = factor;
    return op;
}

constexpr Kind of_one[] = {Kind::relu, Kind::gelu, Kind::silu, Kind::tanh, Kind::scale};
constexpr Kind of_two[] = {Kind::relu_backward, Kind::gelu_backward, Kind::silu_backward, Kind::tanh_backward,
                           Kind::add};

/// From tiny to huge, on both sides of 0.
Values arguments(std::int64_t n, std::uint64_t stream) {
    Values x = normal_values(n, stream, 3);
    const Values edges{0, 1e-6F, -1e-6F, 20, -20, 1e4F, -1e4F};
    for (std::size_t i = 0; i < edges.size() && i < x.size(); ++i) x[i] = edges[i];
    return x;
}

TEST(GpuElementwise, functions_of_one_element_equal_the_cpus) {
    for (const DType type : float_types)
        for (const Kind kind : of_one)
            for (const std::int64_t n : {1, 16, 1003}) {
                Slot y = slot({n}, normal_values(n, 2), type);
                y.access = Access::accumulate_micro_batches;
                expect_parity({step::Compute{op_of(kind, n, 0, -0.75)},
                               {slot({n}, arguments(n, 1), type)},
                               {y},
                               {{0, 0}, {0, 1}}});
            }
}

TEST(GpuElementwise, functions_of_two_elements_equal_the_cpus) {
    for (const DType type : float_types)
        for (const Kind kind : of_two)
            for (const std::int64_t n : {1, 16, 1003}) {
                Slot y = slot({n}, normal_values(n, 3), type);
                y.access = Access::accumulate;
                y.skew = n % 3;
                expect_parity({step::Compute{op_of(kind, n)},
                               {slot({n}, normal_values(n, 1), type), slot({n}, arguments(n, 2), type)},
                               {y}});
            }
}

TEST(GpuElementwise, channels_last_images_are_worked_on_as_they_are_stored) {
    const Shape image{2, 5, 3, 3};
    const auto last = step::Layout::channels_last;
    expect_parity(
        {step::Compute{op_of(Kind::add, image.elements())},
         {slot(image, normal_values(90, 1), DType::bf16, last), slot(image, normal_values(90, 2), DType::bf16, last)},
         {result(image, DType::bf16, Access::overwrite, last)}});
}

TEST(GpuElementwise, each_row_gets_the_bias) {
    for (const DType type : float_types)
        for (const DType table : {type, DType::fp32})
            for (const std::int64_t width : {1, 10, 64, 520})
                expect_parity({step::Compute{op_of(Kind::add_bias, 7 * width, width)},
                               {slot({7, width}, normal_values(7 * width, 1), type),
                                slot({width}, normal_values(width, 2), table)},
                               {result({7, width}, type)}});
}

TEST(GpuElementwise, rows_in_zigzag_get_the_row_of_their_position) {
    plan::Mesh mesh;
    mesh.cp = 2;
    for (const DType type : float_types)
        for (const std::int64_t width : {5, 16})
            for (int rank = 0; rank < 2; ++rank) {
                step::Elementwise op = op_of(Kind::add_positions, 4 * 3 * width, width);
                op.batch = 3;
                op.positions = 8;
                const Slot x = part({4, 3, width}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}}, mesh, rank,
                                    normal_values(8 * 3 * width, 1), type);
                expect_parity({step::Compute{op},
                               {x, slot({8, width}, normal_values(8 * width, 2), type)},
                               {result({4, 3, width}, type)}});
                op.positions = 7;
                EXPECT_THROW(
                    run_on_gpu({step::Compute{op}, {x, slot({7, width}, {}, type)}, {result({4, 3, width}, type)}}),
                    LogicError);
            }
}

TEST(GpuGated, both_passes_equal_the_cpus) {
    for (const DType type : float_types)
        for (const std::int64_t width : {1, 7, 8, 133}) {
            const Values x = normal_values(5 * width * 2, 1, 2);
            expect_parity({step::Compute{op_of(Kind::gated, 5 * width, width)},
                           {slot({5, width, 2}, x, type)},
                           {result({5, width}, type)}});
            expect_parity({step::Compute{op_of(Kind::gated_backward, 10 * width, width)},
                           {slot({5, width}, normal_values(5 * width, 2), type), slot({5, width, 2}, x, type)},
                           {result({5, width, 2}, type)}});
        }
}

TEST(GpuGated, pairs_that_begin_inside_a_pack_are_taken_one_by_one) {
    for (const DType type : float_types) {
        Slot x = slot({40, 2}, normal_values(80, 1), type), dy = slot({40}, normal_values(40, 2), type);
        Slot dx = result({40, 2}, type);
        x.skew = dx.skew = 1;
        expect_parity({step::Compute{op_of(Kind::gated, 40, 40)}, {x}, {result({40}, type)}});
        expect_parity({step::Compute{op_of(Kind::gated_backward, 80, 40)}, {dy, x}, {dx}});
    }
}

TEST(GpuRotary, queries_and_keys_turn_by_their_position_and_values_stay) {
    plan::Mesh mesh;
    mesh.cp = 2;
    for (const DType type : float_types)
        for (const std::int64_t head_dim : {6, 16, 64})
            for (const Kind kind : {Kind::rotary, Kind::rotary_backward}) {
                const std::int64_t width = 2 * (3 + 2) * head_dim;  // 2 groups of 3 queries, key, value
                step::Elementwise op = op_of(kind, 4 * 2 * width, width);
                op.batch = 2;
                op.rotary = {6, 2, head_dim, 10000};
                const Slot x = part({4, 2, width}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}}, mesh, 1,
                                    normal_values(8 * 2 * width, 1), type);
                expect_parity({step::Compute{op}, {x}, {result({4, 2, width}, type)}});
            }
}

TEST(GpuRotary, far_positions_keep_their_angle) {
    plan::Mesh mesh;
    mesh.cp = 4096;
    step::Elementwise op = op_of(Kind::rotary, 3 * 8 * 32, 3 * 32);
    op.rotary = {1, 1, 32, 500000};
    const cpu::Operand place = cpu::testing::part({8, 1, 96}, {{0, plan::Axis::cp}}, mesh, 4095);
    Slot x = slot({8, 1, 96}, normal_values(8 * 96, 1));
    static_cast<step::Place&>(x) = place;  // positions 32760 to 32767
    expect_parity({step::Compute{op}, {x}, {result({8, 1, 96})}});
}

TEST(GpuRotary, rows_that_hold_no_whole_groups_and_too_large_heads_are_refused) {
    step::Elementwise op = op_of(Kind::rotary, 2 * 10, 10);
    op.rotary = {1, 1, 4, 10000};
    EXPECT_THROW(run_on_gpu({step::Compute{op}, {slot({2, 1, 10})}, {result({2, 1, 10})}}), LogicError);
    op = op_of(Kind::rotary, 3 * 512, 3 * 512);
    op.rotary = {1, 1, 512, 10000};
    EXPECT_THROW(run_on_gpu({step::Compute{op}, {slot({1, 1, 1536})}, {result({1, 1, 1536})}}), RuntimeError);
}

}  // namespace
}  // namespace lockstep::gpu::testing
