// Loss scaling as PyTorch's GradScaler does it: look for infinities, then halve or, after 2000 good steps, double.
#include <bit>
#include <cmath>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
bool has_infinite(const T* x, std::int64_t n) {
    std::uint32_t found = 0;
#pragma omp parallel for simd reduction(| : found) if (n > element_grain)
    for (std::int64_t i = 0; i < n; ++i)
        found |= (std::bit_cast<std::uint32_t>(load(x[i])) & 0x7f800000U) == 0x7f800000U ? 1U : 0U;
    return found != 0;
}

}  // namespace

std::unique_ptr<Kernel> make_found_inf(const Operands& o) {
    expect_slots(o, 1, 1, "found_inf");
    return make_function_kernel([o, found_inf = floats(o.out[0])](const Moment&) {
        bool found = false;
        for (const Operand& gradient : o.in)
            with_type(gradient.dtype, [&](auto type) {
                found = found || has_infinite(pointer<decltype(type)>(gradient), gradient.elements());
            });
        *found_inf = found ? 1.0F : 0.0F;
    });
}

std::unique_ptr<Kernel> make_update_loss_scale(const Operands& o) {
    expect_slots(o, 1, 2, "update_loss_scale");
    constexpr float growth_interval = 2000;
    return make_function_kernel(
        [found_inf = floats(o.in[0]), scale = floats(o.out[0]), good_steps = floats(o.out[1])](const Moment&) {
            if (*found_inf != 0) {
                *scale *= 0.5F;
                *good_steps = 0;
            } else if (++*good_steps >= growth_interval) {
                *scale *= 2;
                *good_steps = 0;
            }
        });
}

}  // namespace lockstep::cpu
