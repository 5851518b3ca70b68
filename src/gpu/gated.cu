// Gated activation (SwiGLU, Shazeer 2020): y = silu(gate) up, x = pairs of (gate, up).
#include <cmath>

#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

__host__ __device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

/// M pairs; of one pair the elements come singly, as they need not be aligned together.
template <int M, class T>
__host__ __device__ Pack<float, 2 * M> load_pairs(const T* x, std::int64_t pair) {
    if constexpr (M > 1)
        return load_pack<2 * M>(x, 2 * pair);
    else
        return {load(x[2 * pair]), load(x[2 * pair + 1])};
}

template <class T>
struct Forward {
    const T* x;
    T* y;
    bool add;
    template <int M>
    __host__ __device__ Pack<float, M> compute(std::int64_t i) const {
        const Pack<float, 2 * M> pairs = load_pairs<M>(x, i);
        Pack<float, M> values{};
        for (int k = 0; k < M; ++k) {
            const float gate = pairs.at[2 * k];
            values.at[k] = gate * sigmoid(gate) * pairs.at[2 * k + 1];
        }
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, M>& values) const {
        store_pack(y, i, values, add);
    }
};

template <class T>
struct Backward {
    const T *dy, *x;
    T* dx;
    bool add;
    template <int M>
    __host__ __device__ Pack<float, 2 * M> compute(std::int64_t i) const {
        const Pack<float, 2 * M> pairs = load_pairs<M>(x, i);
        const Pack<float, M> gradient = load_pack<M>(dy, i);
        Pack<float, 2 * M> values{};
        for (int k = 0; k < M; ++k) {
            const float gate = pairs.at[2 * k], up = pairs.at[2 * k + 1], s = sigmoid(gate), d = gradient.at[k];
            values.at[2 * k] = d * up * s * (1.0F + gate * (1.0F - s));
            values.at[2 * k + 1] = d * gate * s;
        }
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, 2 * M>& values) const {
        if constexpr (M > 1) {
            store_pack(dx, 2 * i, values, add);
        } else {
            write(dx[2 * i], values.at[0], add);
            write(dx[2 * i + 1], values.at[1], add);
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_gated(const step::Elementwise& op, const Operands& o) {
    const bool is_forward = op.kind == step::Elementwise::Kind::gated;
    expect_slots(o, is_forward ? 1 : 2, 1, "gated");
    const std::int64_t pairs = is_forward ? op.count : op.count / 2;
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        constexpr int N = pack_of<T>;
        T* out = pointer<T>(o.out[0]);
        const T* first = pointer<T>(o.in[0]);
        const T* x = pointer<T>(o.in[is_forward ? 0 : 1]);
        // Both pairs and single elements begin packs at pair 0, or nowhere.
        const std::int64_t head = elements_before_packs<N>(first, x, out) == 0 ? 0 : -1;
        return make_function_kernel([=, access = o.out[0].access](const Moment& moment, cudaStream_t stream) {
            const bool add = adds(access, moment);
            if (is_forward)
                launch_packs<N>(pairs, head, Forward<T>{x, out, add}, stream);
            else
                launch_packs<N>(pairs, head, Backward<T>{first, x, out, add}, stream);
        });
    });
}

}  // namespace lockstep::gpu
