// Gated activation (SwiGLU, Shazeer 2020): y = silu(gate) up, rows of x = (gate, up).
#include "cpu/dispatch.hpp"
#include "cpu/fast_math.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
void forward(const T* x, T* y, std::int64_t rows, std::int64_t width) {
    parallel_rows(rows, width, [=](std::int64_t r) {
        const T* gate = x + r * 2 * width;
        const T* up = gate + width;
        T* to = y + r * width;
        for (std::int64_t i = 0; i < width; ++i) {
            const float g = load(gate[i]);
            to[i] = store<T>(g * sigmoid(g) * load(up[i]));
        }
    });
}

template <class T>
void backward(const T* dy, const T* x, T* dx, std::int64_t rows, std::int64_t width) {
    parallel_rows(rows, width, [=](std::int64_t r) {
        const T* gate = x + r * 2 * width;
        const T* up = gate + width;
        const T* gradient = dy + r * width;
        T* dgate = dx + r * 2 * width;
        T* dup = dgate + width;
        for (std::int64_t i = 0; i < width; ++i) {
            const float g = load(gate[i]), s = sigmoid(g), d = load(gradient[i]);
            dgate[i] = store<T>(d * load(up[i]) * s * (1.0F + g * (1.0F - s)));
            dup[i] = store<T>(d * g * s);
        }
    });
}

}  // namespace

std::unique_ptr<Kernel> make_gated(const step::Elementwise& op, const Operands& o) {
    const bool is_forward = op.kind == step::Elementwise::Kind::gated;
    expect_slots(o, is_forward ? 1 : 2, 1, "gated");
    const std::int64_t width = op.width, rows = op.count / (is_forward ? width : 2 * width);
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        T* out = pointer<T>(o.out[0]);
        const T* first = pointer<T>(o.in[0]);
        if (is_forward) return make_function_kernel([=](const Moment&) { forward(first, out, rows, width); });
        const T* x = pointer<T>(o.in[1]);
        return make_function_kernel([=](const Moment&) { backward(first, x, out, rows, width); });
    });
}

}  // namespace lockstep::cpu
