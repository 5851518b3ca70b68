// Copies, casts, fills, reorders, transposes of blocks and slices beside the CPU's.
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;

TEST(GpuCopy, casts_between_all_floating_types_with_a_factor) {
    for (const DType from : float_types)
        for (const DType to : float_types)
            for (const std::int64_t n : {1, 7, 8, 1029}) {
                step::Copy op;
                op.count = n;
                op.factor = 0.25;
                expect_parity(
                    {op,
                     {slot({n}, normal_values(n, 1), from)},
                     {slot({n}, normal_values(n, 2), to, step::Layout::row_major, Access::accumulate_micro_batches)},
                     {{0, 0}, {0, 1}}});
            }
}

}  // namespace
}  // namespace lockstep::gpu::testing
