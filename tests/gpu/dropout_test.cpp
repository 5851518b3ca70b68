// Dropout beside the CPU's: what is kept depends on an element's place in the whole tensor alone.
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Layout;
using step::Pass;

step::Dropout dropout_of(std::int64_t count, Pass pass = Pass::forward) {
    step::Dropout op;
    op.count = count;
    op.probability = 0.3;
    op.stream = 11;
    op.pass = pass;
    return op;
}

void expect_forward(const Slot& x) {
    Slot y = x, mask = x;
    y.values = mask.values = Values(x.values.size(), 0);
    mask.dtype = DType::uint8;
    expect_parity({step::Compute{dropout_of(x.elements())}, {x}, {y, mask}, {{0, 0}, {0, 1}, {5, 2}}});
}

TEST(GpuDropout, keeps_what_the_cpu_keeps_in_every_step_and_micro_batch) {
    for (const DType type : float_types)
        for (const std::int64_t n : {1, 8, 1003}) expect_forward(slot({n}, normal_values(n, 1), type));
}

TEST(GpuDropout, parts_of_a_split_tensor_keep_what_the_whole_keeps) {
    plan::Mesh mesh;
    mesh.cp = 2;
    mesh.tp = 2;
    const auto zigzag = step::Shard::Order::zigzag;
    for (const DType type : float_types)
        for (const std::int64_t width : {3, 8, 16})
            for (int rank = 0; rank < 4; ++rank) {
                const Values whole = normal_values(8 * 3 * 2 * width, 1);
                expect_forward(part({4, 3, 2 * width}, {{0, plan::Axis::cp, zigzag}}, mesh, rank, whole, type));
                expect_forward(
                    part({4, 3, width}, {{0, plan::Axis::cp, zigzag}, {2, plan::Axis::tp}}, mesh, rank, whole, type));
            }
}

TEST(GpuDropout, channels_last_images_are_keyed_row_major) {
    for (const DType type : float_types)
        expect_forward(slot({2, 5, 3, 3}, normal_values(90, 1), type, Layout::channels_last));
}

TEST(GpuDropout, the_gradient_passes_where_the_mask_is_set) {
    for (const DType type : float_types)
        for (const std::int64_t n : {1, 8, 1003})
            for (const std::int64_t skew : {0, 3}) {
                Values mask(static_cast<std::size_t>(n));
                for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<float>(i % 3 == 1);
                Slot dy = slot({n}, normal_values(n, 1), type), kept = slot({n}, mask, DType::uint8);
                Slot dx = result({n}, type);
                dy.skew = kept.skew = dx.skew = skew;
                expect_parity({step::Compute{dropout_of(n, Pass::backward_data)}, {dy, kept}, {dx}});
            }
}

}  // namespace
}  // namespace lockstep::gpu::testing
