// Copies, casts, fills, reorders, transposes of blocks and slices beside the CPU's.
#include "base/error.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using step::Layout;
using step::Pass;

step::Copy copy_of(std::int64_t count, double factor = 1) {
    step::Copy op;
    op.count = count;
    op.factor = factor;
    return op;
}

TEST(GpuCopy, casts_between_all_floating_types_with_a_factor) {
    for (const DType from : float_types)
        for (const DType to : float_types)
            for (const std::int64_t n : {1, 7, 8, 1029}) {
                Slot y = slot({n}, normal_values(n, 2), to);
                y.access = Access::accumulate_micro_batches;
                expect_parity({copy_of(n, 0.25), {slot({n}, normal_values(n, 1), from)}, {y}, {{0, 0}, {0, 1}}});
            }
}

TEST(GpuCopy, tensors_that_begin_inside_a_pack_are_copied_whole) {
    for (const DType type : float_types)
        for (const std::int64_t skew : {1, 3, 5})
            for (const std::int64_t other : {skew, std::int64_t{2}})
                for (const std::int64_t n : {2, 9, 517}) {
                    Slot x = slot({n}, normal_values(n, 1), type), y = result({n}, type);
                    x.skew = skew;
                    y.skew = other;
                    expect_parity({copy_of(n, 0.5), {x}, {y}});
                }
}

TEST(GpuCopy, plain_copies_move_bytes_of_any_type) {
    for (const DType type : {DType::fp32, DType::bf16, DType::int32, DType::uint8})
        expect_parity({copy_of(5), {slot({5}, {1, 2, 3, 4, 250}, type)}, {result({5}, type)}});
    EXPECT_THROW(run_on_gpu({copy_of(5), {slot({5})}, {result({4})}}), LogicError);
}

TEST(GpuCopy, fills_with_zero_and_other_values) {
    for (const DType type : float_types)
        for (const double value : {0.0, -1.5})
            for (const std::int64_t skew : {0, 3}) {
                step::Fill op;
                op.count = 1003;
                op.value = value;
                Slot y = slot({1003}, normal_values(1003, 1), type);
                y.skew = skew;
                expect_parity({step::Compute{op}, {}, {y}});
            }
}

step::Reorder reorder_of(const Shape& weight) {
    step::Reorder op;
    op.count = weight.elements();
    op.target = {.n = 1,
                 .in_channels = weight[1],
                 .height = 8,
                 .width = 8,
                 .out_channels = weight[0],
                 .kernel = weight[2],
                 .stride = 1,
                 .padding = 1};
    return op;
}

TEST(GpuReorder, weights_become_channels_last_and_their_gradients_row_major_again) {
    const Shape weight{4, 3, 3, 3};
    const Values w = normal_values(weight.elements(), 1);
    for (const DType type : float_types) {
        expect_parity({step::Compute{reorder_of(weight)},
                       {slot(weight, w, type)},
                       {result(weight, type, Access::overwrite, Layout::opaque)}});
        expect_parity({step::Compute{reorder_of(weight)},
                       {slot(weight, w, type, Layout::opaque)},
                       {result(weight, DType::fp32, Access::accumulate_micro_batches)},
                       {{0, 0}, {0, 1}}});
    }
    expect_parity({step::Compute{reorder_of(weight)},
                   {slot(weight, w, DType::fp32, Layout::opaque)},
                   {result(weight, DType::fp32, Access::overwrite, Layout::channels_last)}});
}

TEST(GpuReorder, opaque_weights_are_stored_input_channels_last) {
    Slot w = slot({1, 2, 1, 2}, {0, 1, 2, 3}), stored = result({1, 2, 1, 2}, DType::fp32);
    w.layout = Layout::row_major;
    stored.layout = Layout::opaque;
    const Case c{step::Compute{reorder_of({1, 2, 1, 2})}, {w}, {stored}};
    EXPECT_EQ(run_on_gpu(c)[0][0], w.values) << "read back in the same order";
    EXPECT_EQ(stored_at(Layout::opaque, w.shape, 1), 2) << "pixel 1 of channel 0 comes behind pixel 0 of channel 1";
}

TEST(GpuBlockTranspose, exchanges_rows_and_blocks_of_any_width) {
    for (const DType type : {DType::fp32, DType::bf16, DType::uint8})
        for (const std::int64_t width : {1, 2, 3, 4, 8, 17, 16}) {
            const Shape x{5, 3, width};
            Values values(static_cast<std::size_t>(x.elements()));
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 199);
            expect_parity({step::Compute{step::BlockTranspose{5, 3, width}},
                           {slot(x, values, type)},
                           {result({3, 5, width}, type)}});
        }
}

TEST(GpuSlice, takes_columns_and_puts_their_gradient_back_among_the_others) {
    for (const DType type : float_types)
        for (const auto [width, first, kept] : {std::array{4, 1, 2}, {16, 8, 8}, {9, 0, 3}, {32, 4, 4}, {5, 2, 0}}) {
            step::Slice op{7, width, first, kept};
            const Shape whole{7, width}, part{7, std::max(kept, 1)};
            if (kept > 0)
                expect_parity(
                    {step::Compute{op}, {slot(whole, normal_values(7 * width, 1), type)}, {result(part, type)}});
            op.pass = Pass::backward_data;
            Slot dx = slot(whole, normal_values(7 * width, 2), type);
            dx.access = Access::update;
            expect_parity({step::Compute{op}, {slot(part, normal_values(part.elements(), 3), type)}, {dx}});
        }
    EXPECT_THROW(run_on_gpu({step::Compute{step::Slice{2, 4, 3, 2}}, {slot({2, 4})}, {result({2, 2})}}), LogicError);
}

}  // namespace
}  // namespace lockstep::gpu::testing
