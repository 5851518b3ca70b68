// Gated activation (SwiGLU, Shazeer 2020): y = silu(gate) up, x = pairs of (gate, up).
#include "cpu/dispatch.hpp"
#include "cpu/fast_math.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
void forward(const T* x, T* y, std::int64_t pairs) {
    parallel_for(pairs, element_grain, [=](std::int64_t i) {
        const float gate = load(x[2 * i]);
        y[i] = store<T>(gate * sigmoid(gate) * load(x[2 * i + 1]));
    });
}

template <class T>
void backward(const T* dy, const T* x, T* dx, std::int64_t pairs) {
    parallel_for(pairs, element_grain, [=](std::int64_t i) {
        const float gate = load(x[2 * i]), up = load(x[2 * i + 1]), s = sigmoid(gate), d = load(dy[i]);
        dx[2 * i] = store<T>(d * up * s * (1.0F + gate * (1.0F - s)));
        dx[2 * i + 1] = store<T>(d * gate * s);
    });
}

}  // namespace

std::unique_ptr<Kernel> make_gated(const step::Elementwise& op, const Operands& o) {
    const bool is_forward = op.kind == step::Elementwise::Kind::gated;
    expect_slots(o, is_forward ? 1 : 2, 1, "gated");
    const std::int64_t pairs = is_forward ? op.count : op.count / 2;
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        T* out = pointer<T>(o.out[0]);
        const T* first = pointer<T>(o.in[0]);
        if (is_forward) return make_function_kernel([=](const Moment&) { forward(first, out, pairs); });
        const T* x = pointer<T>(o.in[1]);
        return make_function_kernel([=](const Moment&) { backward(first, x, out, pairs); });
    });
}

}  // namespace lockstep::cpu
