// Rows moved as they are: columns cut out of rows and put back, and blocks transposed for an all-to-all.
#include <numeric>

#include "base/error.hpp"
#include "gpu/divide.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

/// outer x inner rows of `width` bytes; strides of what is read and written in bytes.
struct RowMove {
    const std::byte* from;
    std::byte* to;
    std::int64_t outer, inner, width, from_outer, from_inner, to_outer, to_inner;

    /// The widest access that all addresses allow, in bytes.
    std::int64_t unit() const {
        std::int64_t unit = widest_access;
        for (const std::int64_t bytes : {width, from_outer, from_inner, to_outer, to_inner,
                                         static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(from)),
                                         static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to))})
            unit = std::gcd(unit, bytes);
        return unit;
    }
};

/// Moves unit i of all rows' units.
template <class Unit>
struct MoveUnits {
    RowMove move;  ///< its strides are in units
    Divider width, inner;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t row = width.quotient(i), unit = width.remainder(i, row);
        const std::int64_t o = inner.quotient(row), n = inner.remainder(row, o);
        reinterpret_cast<Unit*>(move.to)[o * move.to_outer + n * move.to_inner + unit] =
            reinterpret_cast<const Unit*>(move.from)[o * move.from_outer + n * move.from_inner + unit];
    }
};

template <class Unit>
void launch_units(RowMove move, cudaStream_t stream) {
    constexpr std::int64_t size = sizeof(Unit);
    for (std::int64_t* bytes : {&move.width, &move.from_outer, &move.from_inner, &move.to_outer, &move.to_inner})
        *bytes /= size;
    launch_elements(move.outer * move.inner * move.width,
                    MoveUnits<Unit>{move, Divider(move.width), Divider(move.inner)}, stream);
}

std::unique_ptr<Kernel> make_move(const RowMove& move) {
    return make_function_kernel([move, unit = move.unit()](const Moment&, cudaStream_t stream) {
        switch (unit) {
            case 16: return launch_units<Pack<std::uint64_t, 2>>(move, stream);
            case 8: return launch_units<std::uint64_t>(move, stream);
            case 4: return launch_units<std::uint32_t>(move, stream);
            case 2: return launch_units<std::uint16_t>(move, stream);
            default: return launch_units<std::uint8_t>(move, stream);
        }
    });
}

}  // namespace

std::unique_ptr<Kernel> make_block_transpose(const step::BlockTranspose& op, const Operands& o) {
    expect_slots(o, 1, 1, "block_transpose");
    if (o.in[0].dtype != o.out[0].dtype || o.out[0].access != step::Access::overwrite)
        throw LogicError("block_transpose only moves elements: it can't cast or add");
    const auto row = op.width * static_cast<std::int64_t>(size_of(o.in[0].dtype).value);
    return make_move({pointer<std::byte>(o.in[0]), pointer<std::byte>(o.out[0]), op.blocks, op.rows, row, row,
                      op.blocks * row, op.rows * row, row});
}

std::unique_ptr<Kernel> make_slice(const step::Slice& op, const Operands& o) {
    expect_slots(o, 1, 1, "slice");
    if (op.first < 0 || op.kept < 0 || op.first + op.kept > op.width)
        throw LogicError("columns " + std::to_string(op.first) + " to " + std::to_string(op.first + op.kept) + " of " +
                         std::to_string(op.width));
    if (o.in[0].dtype != o.out[0].dtype || can_add(o.out[0].access))
        throw LogicError("slice only moves elements: it can't cast or add");
    const auto size = static_cast<std::int64_t>(size_of(o.in[0].dtype).value);
    const bool is_forward = op.pass == step::Pass::forward;
    const std::int64_t wide = op.width * size, narrow = op.kept * size, before = op.first * size;
    return make_move({pointer<std::byte>(o.in[0]) + (is_forward ? before : 0),
                      pointer<std::byte>(o.out[0]) + (is_forward ? 0 : before), 1, op.rows, narrow, 0,
                      is_forward ? wide : narrow, 0, is_forward ? narrow : wide});
}

}  // namespace lockstep::gpu
