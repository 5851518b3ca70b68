// Rotary position embedding (Su et al. 2021) in the half-split form of Llama: element i of a head turns with element
// i + head_dim / 2 by the angle position theta^(-2 i / head_dim). A row holds, for each group of heads, its queries,
// its key and its value; values stay.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

/// cos and sin of each local position, [positions, head_dim / 2] each.
std::shared_ptr<const std::vector<float>> turns(const model::Rotary& rotary,
                                                const std::vector<std::int64_t>& positions) {
    const std::int64_t half = rotary.head_dim / 2, n = std::ssize(positions);
    auto table = std::make_shared<std::vector<float>>(static_cast<std::size_t>(2 * n * half));
    for (std::int64_t row = 0; row < n; ++row)
        for (std::int64_t i = 0; i < half; ++i) {
            const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary.head_dim);
            const double angle = static_cast<double>(positions[row]) * std::pow(rotary.theta, exponent);
            (*table)[row * half + i] = static_cast<float>(std::cos(angle));
            (*table)[(n + row) * half + i] = static_cast<float>(std::sin(angle));
        }
    return table;
}

template <class T>
void turn(const T* from, T* to, const float* cosines, const float* sines, std::int64_t half, float direction) {
    for (std::int64_t i = 0; i < half; ++i) {
        const float a = load(from[i]), b = load(from[i + half]), sine = direction * sines[i];
        to[i] = store<T>(a * cosines[i] - b * sine);
        to[i + half] = store<T>(a * sine + b * cosines[i]);
    }
}

}  // namespace

std::unique_ptr<Kernel> make_rotary(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 1, 1, "rotary");
    const std::int64_t half = op.rotary.head_dim / 2, groups = op.rotary.kv_heads;
    const std::int64_t turned = groups > 0 ? op.rotary.heads / groups + 1 : 0;  // heads of a group: queries and key
    const std::int64_t width = op.width, rows = op.count / op.width, batch = op.batch;
    if (width != groups * (turned + 1) * 2 * half)
        throw LogicError(fmt::format("rows of {} elements do not hold {} groups of {} heads of {} elements", width,
                                     groups, turned + 1, 2 * half));
    const std::vector<std::int64_t> positions = step::positions_of_rows(o.in[0], rows, batch);
    const std::int64_t local_positions = std::ssize(positions);
    const float direction = op.kind == step::Elementwise::Kind::rotary ? 1.0F : -1.0F;  // the inverse is the transpose
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel(
            [=, x = pointer<T>(o.in[0]), y = pointer<T>(o.out[0]), table = turns(op.rotary, positions)](const Moment&) {
                const float* cosines = table->data();
                parallel_rows(rows, width, [=](std::int64_t r) {
                    const float* c = cosines + r / batch * half;
                    const float* s = c + local_positions * half;
                    for (std::int64_t g = 0; g < groups; ++g) {
                        const std::int64_t first = r * width + g * (turned + 1) * 2 * half;
                        for (std::int64_t h = 0; h < turned; ++h)
                            turn(x + first + h * 2 * half, y + first + h * 2 * half, c, s, half, direction);
                        const std::int64_t value = first + turned * 2 * half;
                        for (std::int64_t i = value; i < value + 2 * half; ++i) y[i] = x[i];
                    }
                });
            });
    });
}

}  // namespace lockstep::cpu
