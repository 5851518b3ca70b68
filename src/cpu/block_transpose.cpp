// [rows, blocks, width] -> [blocks, rows, width]: packs what an all-to-all sends, or unpacks what it brought.
#include <cstring>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {

std::unique_ptr<Kernel> make_block_transpose(const step::BlockTranspose& op, const Operands& o) {
    expect_slots(o, 1, 1, "block_transpose");
    if (o.in[0].dtype != o.out[0].dtype || o.out[0].access != step::Access::overwrite)
        throw LogicError("block_transpose only moves elements: it can't cast or add");
    const auto bytes = op.width * static_cast<std::int64_t>(size_of(o.in[0].dtype).value);
    return make_function_kernel(
        [=, from = pointer<std::byte>(o.in[0]), to = pointer<std::byte>(o.out[0])](const Moment&) {
            // By the order of what is written; the rows that are read are `blocks` apart.
            parallel_rows(op.blocks * op.rows, op.width, [=, rows = op.rows, blocks = op.blocks](std::int64_t i) {
                const std::int64_t block = i / rows, row = i % rows;
                std::memcpy(to + i * bytes, from + (row * blocks + block) * bytes, static_cast<std::size_t>(bytes));
            });
        });
}

}  // namespace lockstep::cpu
