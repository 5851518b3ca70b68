// Copies with a factor, casts and fills.
#include <cstring>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

void copy_bytes(const std::byte* from, std::byte* to, std::int64_t bytes) {
    constexpr std::int64_t piece = 65536;
    parallel_for((bytes + piece - 1) / piece, 2, [=](std::int64_t i) {
        std::memcpy(to + i * piece, from + i * piece, static_cast<std::size_t>(std::min(piece, bytes - i * piece)));
    });
}

template <class From, class To, bool Adding>
void convert(const From* from, To* to, std::int64_t n, float factor) {
    parallel_for(n, element_grain, [=](std::int64_t i) { write<To, Adding>(to[i], load(from[i]) * factor); });
}

}  // namespace

std::unique_ptr<Kernel> make_copy(double factor, const Operands& o) {
    expect_slots(o, 1, 1, "copy");
    const Operand& from = o.in[0];
    const Output& to = o.out[0];
    if (from.elements() != to.elements()) throw LogicError("a copy between tensors of different size");
    if (from.dtype == to.dtype && factor == 1 && !can_add(to.access)) {
        return make_function_kernel([source = pointer<std::byte>(from), target = pointer<std::byte>(to),
                                     bytes = from.bytes()](const Moment&) { copy_bytes(source, target, bytes); });
    }
    return with_type(from.dtype, [&](auto from_type) {
        return with_type(to.dtype, [&](auto to_type) -> std::unique_ptr<Kernel> {
            using From = decltype(from_type);
            using To = decltype(to_type);
            return make_function_kernel([source = pointer<From>(from), target = pointer<To>(to), n = from.elements(),
                                         factor, access = to.access](const Moment& moment) {
                with_access(access, moment, [&](auto add) {
                    convert<From, To, add.value>(source, target, n, static_cast<float>(factor));
                });
            });
        });
    });
}

std::unique_ptr<Kernel> make_fill(const step::Fill& op, const Operands& o) {
    expect_slots(o, 0, 1, "fill");
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel([y = pointer<T>(o.out[0]), n = o.out[0].elements(),
                                     value = store<T>(static_cast<float>(op.value))](const Moment&) {
            parallel_for(n, element_grain, [=](std::int64_t i) { y[i] = value; });
        });
    });
}

}  // namespace lockstep::cpu
