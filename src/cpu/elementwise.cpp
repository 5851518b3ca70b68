// Element by element: activations and their gradients, sums, scaling; rows that add a bias or their position's row.
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/fast_math.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

using Kind = step::Elementwise::Kind;

// Functions of one element x.
struct Relu {
    float operator()(float x) const { return x > 0 ? x : 0.0F; }
};
/// x Phi(x), exact form.
struct Gelu {
    float operator()(float x) const { return 0.5F * x * (1.0F + fast_erf(x * (1 / std::numbers::sqrt2_v<float>))); }
};
struct Silu {
    float operator()(float x) const { return x * sigmoid(x); }
};
struct Tanh {
    float operator()(float x) const { return fast_tanh(x); }
};
struct Scale {
    float factor;
    float operator()(float x) const { return factor * x; }
};

// Functions of two: the gradient and what the forward pass left (y for relu and tanh, x for gelu and silu); or a and b.
struct ReluBackward {
    float operator()(float dy, float y) const { return y > 0 ? dy : 0.0F; }
};
struct GeluBackward {
    float operator()(float dy, float x) const {
        const float normal_cdf = 0.5F * (1.0F + fast_erf(x * (1 / std::numbers::sqrt2_v<float>)));
        const float density = 0.39894228040F * fast_exp(-0.5F * x * x);  // 1 / sqrt(2 pi)
        return dy * (normal_cdf + x * density);
    }
};
struct SiluBackward {
    float operator()(float dy, float x) const {
        const float s = sigmoid(x);
        return dy * s * (1.0F + x * (1.0F - s));
    }
};
struct TanhBackward {
    float operator()(float dy, float y) const { return dy * (1.0F - y * y); }
};
struct Add {
    float operator()(float a, float b) const { return a + b; }
};

template <class T, bool Adding, class F>
void unary_loop(const T* x, T* y, std::int64_t n, F f) {
    parallel_for(n, element_grain, [=](std::int64_t i) { write<T, Adding>(y[i], f(load(x[i]))); });
}
template <class T, bool Adding, class F>
void binary_loop(const T* a, const T* b, T* y, std::int64_t n, F f) {
    parallel_for(n, element_grain, [=](std::int64_t i) { write<T, Adding>(y[i], f(load(a[i]), load(b[i]))); });
}

template <class F>
std::unique_ptr<Kernel> make_unary(std::int64_t n, const Operands& o, F f) {
    expect_slots(o, 1, 1, "elementwise");
    return with_type(o.out[0].dtype, [&](auto type) {
        using T = decltype(type);
        return make_function_kernel(
            [x = pointer<T>(o.in[0]), y = pointer<T>(o.out[0]), access = o.out[0].access, n, f](const Moment& moment) {
                with_access(access, moment, [&](auto add) { unary_loop<T, add.value>(x, y, n, f); });
            });
    });
}

template <class F>
std::unique_ptr<Kernel> make_binary(std::int64_t n, const Operands& o, F f) {
    expect_slots(o, 2, 1, "elementwise");
    return with_type(o.out[0].dtype, [&](auto type) {
        using T = decltype(type);
        return make_function_kernel([a = pointer<T>(o.in[0]), b = pointer<T>(o.in[1]), y = pointer<T>(o.out[0]),
                                     access = o.out[0].access, n, f](const Moment& moment) {
            with_access(access, moment, [&](auto add) { binary_loop<T, add.value>(a, b, y, n, f); });
        });
    });
}

/// y = x + table[chosen[r / batch]] for each row r.
std::unique_ptr<Kernel> make_add_rows(const step::Elementwise& op, const Operands& o, std::int64_t batch,
                                      std::vector<std::int64_t> chosen) {
    return with_type(o.out[0].dtype, [&](auto type) {
        return with_type(o.in[1].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using P = decltype(table_type);
            return make_function_kernel([x = pointer<T>(o.in[0]), table = pointer<P>(o.in[1]), y = pointer<T>(o.out[0]),
                                         rows = op.count / op.width, width = op.width, batch,
                                         chosen = std::move(chosen)](const Moment&) {
                parallel_rows(rows, width, [=, row_of = chosen.data()](std::int64_t r) {
                    const T* from = x + r * width;
                    const P* added = table + row_of[r / batch] * width;
                    T* to = y + r * width;
                    for (std::int64_t i = 0; i < width; ++i) to[i] = store<T>(load(from[i]) + load(added[i]));
                });
            });
        });
    });
}

std::unique_ptr<Kernel> make_add_positions(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 2, 1, "add_positions");
    std::vector<std::int64_t> positions = step::positions_of_rows(o.in[0], op.count / op.width, op.batch);
    for (const std::int64_t p : positions)
        if (p >= op.positions) throw LogicError(fmt::format("position {} in a table of {} positions", p, op.positions));
    return make_add_rows(op, o, op.batch, std::move(positions));
}

std::unique_ptr<Kernel> make_add_bias(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 2, 1, "add_bias");
    return make_add_rows(op, o, op.count / op.width, {0});
}

}  // namespace

std::unique_ptr<Kernel> make_elementwise(const step::Elementwise& op, const Operands& o) {
    const std::int64_t n = op.count;
    switch (op.kind) {
        case Kind::relu: return make_unary(n, o, Relu{});
        case Kind::gelu: return make_unary(n, o, Gelu{});
        case Kind::silu: return make_unary(n, o, Silu{});
        case Kind::tanh: return make_unary(n, o, Tanh{});
        case Kind::scale: return make_unary(n, o, Scale{static_cast<float>(op.factor)});
        case Kind::relu_backward: return make_binary(n, o, ReluBackward{});
        case Kind::gelu_backward: return make_binary(n, o, GeluBackward{});
        case Kind::silu_backward: return make_binary(n, o, SiluBackward{});
        case Kind::tanh_backward: return make_binary(n, o, TanhBackward{});
        case Kind::add: return make_binary(n, o, Add{});
        case Kind::add_positions: return make_add_positions(op, o);
        case Kind::add_bias: return make_add_bias(op, o);
        case Kind::gated:
        case Kind::gated_backward: return make_gated(op, o);
        case Kind::rotary:
        case Kind::rotary_backward: return make_rotary(op, o);
        case Kind::sigmoid:
        case Kind::sigmoid_backward:
        case Kind::channel_scale:
        case Kind::channel_scale_backward: break;  // model::why_only_simulated
    }
    throw LogicError("unknown elementwise op");
}

}  // namespace lockstep::cpu
