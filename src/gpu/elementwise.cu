// Element by element: activations and their gradients, sums, scaling; rows that add a bias or their position's row.
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"
#include "gpu/place.cuh"

namespace lockstep::gpu {
namespace {

using Kind = step::Elementwise::Kind;

__host__ __device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
__host__ __device__ inline float normal_cdf(float x) {
    return 0.5F * (1.0F + erff(x * (1 / std::numbers::sqrt2_v<float>)));
}

// Functions of one element x.
struct Relu {
    __host__ __device__ float operator()(float x) const { return x > 0 ? x : 0.0F; }
};
/// x Phi(x), exact form.
struct Gelu {
    __host__ __device__ float operator()(float x) const { return x * normal_cdf(x); }
};
struct Silu {
    __host__ __device__ float operator()(float x) const { return x * sigmoid(x); }
};
struct Tanh {
    __host__ __device__ float operator()(float x) const { return tanhf(x); }
};
struct Scale {
    float factor;
    __host__ __device__ float operator()(float x) const { return factor * x; }
};

// Functions of two: the gradient and what the forward pass left (y for relu and tanh, x for gelu and silu); or a and b.
struct ReluBackward {
    __host__ __device__ float operator()(float dy, float y) const { return y > 0 ? dy : 0.0F; }
};
struct GeluBackward {
    __host__ __device__ float operator()(float dy, float x) const {
        const float density = 0.39894228040F * expf(-0.5F * x * x);  // 1 / sqrt(2 pi)
        return dy * (normal_cdf(x) + x * density);
    }
};
struct SiluBackward {
    __host__ __device__ float operator()(float dy, float x) const {
        const float s = sigmoid(x);
        return dy * s * (1.0F + x * (1.0F - s));
    }
};
struct TanhBackward {
    __host__ __device__ float operator()(float dy, float y) const { return dy * (1.0F - y * y); }
};
struct Add {
    __host__ __device__ float operator()(float a, float b) const { return a + b; }
};

template <class T, class F>
struct Unary {
    const T* x;
    T* y;
    bool add;
    F f;
    template <int M>
    __host__ __device__ Pack<float, M> compute(std::int64_t i) const {
        Pack<float, M> values = load_pack<M>(x, i);
        for (int k = 0; k < M; ++k) values.at[k] = f(values.at[k]);
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, M>& values) const {
        store_pack(y, i, values, add);
    }
};
template <class T, class F>
struct Binary {
    const T *a, *b;
    T* y;
    bool add;
    F f;
    template <int M>
    __host__ __device__ Pack<float, M> compute(std::int64_t i) const {
        Pack<float, M> values = load_pack<M>(a, i);
        const Pack<float, M> others = load_pack<M>(b, i);
        for (int k = 0; k < M; ++k) values.at[k] = f(values.at[k], others.at[k]);
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, M>& values) const {
        store_pack(y, i, values, add);
    }
};

template <class F>
std::unique_ptr<Kernel> make_unary(std::int64_t n, const Operands& o, F f) {
    expect_slots(o, 1, 1, "elementwise");
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel([x = pointer<T>(o.in[0]), y = pointer<T>(o.out[0]), access = o.out[0].access, n, f](
                                        const Moment& moment, cudaStream_t stream) {
            constexpr int N = pack_of<T>;
            launch_packs<N>(n, elements_before_packs<N>(x, y), Unary<T, F>{x, y, adds(access, moment), f}, stream);
        });
    });
}

template <class F>
std::unique_ptr<Kernel> make_binary(std::int64_t n, const Operands& o, F f) {
    expect_slots(o, 2, 1, "elementwise");
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel([a = pointer<T>(o.in[0]), b = pointer<T>(o.in[1]), y = pointer<T>(o.out[0]),
                                     access = o.out[0].access, n, f](const Moment& moment, cudaStream_t stream) {
            constexpr int N = pack_of<T>;
            launch_packs<N>(n, elements_before_packs<N>(a, b, y), Binary<T, F>{a, b, y, adds(access, moment), f},
                            stream);
        });
    });
}

/// y = x + the table's row at the position of each `batch` of rows.
template <class T, class P>
struct AddRow {
    static constexpr int N = pack_of<T, P>;
    const T* x;
    const P* table;
    T* y;
    std::int64_t width, batch, head;
    DeviceRuns positions;
    bool add;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const std::int64_t first = row * width, from = positions.global(row / batch) * width;
        for_packs<N>(group, RowSpan{first, width, head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> values = load_pack<M>(x, first + i);
            const Pack<float, M> added = load_pack<M>(table, from + i);
            for (int k = 0; k < M; ++k) values.at[k] += added.at[k];
            store_pack(y, first + i, values, add);
        });
    }
};

std::unique_ptr<Kernel> make_add_rows(const step::Elementwise& op, const Operands& o, std::int64_t batch,
                                      const DeviceRuns& positions) {
    return with_type(o.out[0].dtype, [&](auto type) {
        return with_type(o.in[1].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using P = decltype(table_type);
            constexpr int N = AddRow<T, P>::N;
            AddRow<T, P> body{
                pointer<T>(o.in[0]), pointer<P>(o.in[1]), pointer<T>(o.out[0]), op.width, batch, 0, positions, false};
            body.head = op.width % N == 0 ? elements_before_packs<N>(body.x, body.table, body.y) : -1;
            if (body.head > 0) body.head = -1;
            return make_function_kernel([body, rows = op.count / op.width, access = o.out[0].access](
                                            const Moment& moment, cudaStream_t stream) mutable {
                body.add = adds(access, moment);
                launch_rows(rows, body.width / N, body, stream);
            });
        });
    });
}

std::unique_ptr<Kernel> make_add_positions(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 2, 1, "add_positions");
    return make_add_rows(op, o, op.batch, positions_of_rows(o.in[0], op.count / op.width, op.batch, op.positions));
}

std::unique_ptr<Kernel> make_add_bias(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 2, 1, "add_bias");
    return make_add_rows(op, o, op.count / op.width, DeviceRuns::whole(1));
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

}  // namespace lockstep::gpu
