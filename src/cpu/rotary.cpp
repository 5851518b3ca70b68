// Rotary position embedding (Su et al. 2021) in the half-split form of Llama: element i of a head turns with element
// i + head_dim / 2 by the angle position theta^(-2 i / head_dim). Values (the last kv_heads) stay.
#include <cmath>
#include <memory>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

/// cos and sin, [seq, head_dim / 2] each.
std::shared_ptr<const std::vector<float>> turns(const step::Elementwise& op) {
    const std::int64_t half = op.rotary.head_dim / 2;
    auto table = std::make_shared<std::vector<float>>(static_cast<std::size_t>(2 * op.seq * half));
    for (std::int64_t position = 0; position < op.seq; ++position)
        for (std::int64_t i = 0; i < half; ++i) {
            const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(op.rotary.head_dim);
            const double angle = static_cast<double>(position) * std::pow(op.rotary.theta, exponent);
            (*table)[position * half + i] = static_cast<float>(std::cos(angle));
            (*table)[(op.seq + position) * half + i] = static_cast<float>(std::sin(angle));
        }
    return table;
}

}  // namespace

std::unique_ptr<Kernel> make_rotary(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 1, 1, "rotary");
    const std::int64_t width = op.width, rows = op.count / op.width, seq = op.seq, half = op.rotary.head_dim / 2;
    const std::int64_t turned = op.rotary.heads + op.rotary.kv_heads;
    const float direction = op.kind == step::Elementwise::Kind::rotary ? 1.0F : -1.0F;  // the inverse is the transpose
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel(
            [=, x = pointer<T>(o.in[0]), y = pointer<T>(o.out[0]), table = turns(op)](const Moment&) {
                const float* cosines = table->data();
                parallel_rows(rows, width, [=](std::int64_t r) {
                    const float* c = cosines + (r % seq) * half;
                    const float* s = c + seq * half;
                    for (std::int64_t h = 0; h < turned; ++h) {
                        const T* from = x + r * width + h * 2 * half;
                        T* to = y + r * width + h * 2 * half;
                        for (std::int64_t i = 0; i < half; ++i) {
                            const float a = load(from[i]), b = load(from[i + half]), sine = direction * s[i];
                            to[i] = store<T>(a * c[i] - b * sine);
                            to[i + half] = store<T>(a * sine + b * c[i]);
                        }
                    }
                    for (std::int64_t i = r * width + turned * 2 * half; i < (r + 1) * width; ++i) y[i] = x[i];
                });
            });
    });
}

}  // namespace lockstep::cpu
