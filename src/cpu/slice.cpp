// Some columns of rows, and their gradient back among the columns they came from.
#include <fmt/format.h>

#include <cstring>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {

std::unique_ptr<Kernel> make_slice(const step::Slice& op, const Operands& o) {
    expect_slots(o, 1, 1, "slice");
    if (op.first < 0 || op.kept < 0 || op.first + op.kept > op.width)
        throw LogicError(fmt::format("columns {} to {} of {}", op.first, op.first + op.kept, op.width));
    if (o.in[0].dtype != o.out[0].dtype || can_add(o.out[0].access))
        throw LogicError("slice only moves elements: it can't cast or add");
    const auto size = static_cast<std::int64_t>(size_of(o.in[0].dtype).value);
    const bool is_forward = op.pass == step::Pass::forward;
    const std::int64_t wide = op.width * size, narrow = op.kept * size, before = op.first * size;
    return make_function_kernel([=, from = pointer<std::byte>(o.in[0]) + (is_forward ? before : 0),
                                 to = pointer<std::byte>(o.out[0]) + (is_forward ? 0 : before), rows = op.rows,
                                 kept = op.kept](const Moment&) {
        parallel_rows(rows, kept, [=](std::int64_t r) {
            std::memcpy(to + r * (is_forward ? narrow : wide), from + r * (is_forward ? wide : narrow),
                        static_cast<std::size_t>(narrow));
        });
    });
}

}  // namespace lockstep::cpu
