// Dropout whose draws depend on the seed, the step and the place of an element in the global tensor alone.
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"
#include "gpu/place.cuh"
#include "gpu/random.cuh"

namespace lockstep::gpu {
namespace {

struct Draw {
    std::uint64_t seed, stream, first;
    float probability;
    __host__ __device__ bool keeps(std::int64_t place) const {
        return random_uniform(seed, stream, first + static_cast<std::uint64_t>(place)) >= probability;
    }
};

template <int M>
struct Dropped {
    Pack<float, M> y;
    Pack<std::uint8_t, M> mask;
};

/// The elements of a pack are neighbours in the whole tensor.
template <class T>
struct Forward {
    const T* x;
    T* y;
    std::uint8_t* mask;
    Draw draw;
    float factor;
    bool add;
    RowMajorIndex index;
    DevicePlace place;

    template <int M>
    __host__ __device__ Dropped<M> compute(std::int64_t i) const {
        Dropped<M> dropped{load_pack<M>(x, i), {}};
        const std::int64_t first = place(index(i));
        for (int k = 0; k < M; ++k) {
            const bool keep = draw.keeps(first + k);
            dropped.mask.at[k] = keep ? 1 : 0;
            dropped.y.at[k] = keep ? dropped.y.at[k] * factor : 0.0F;
        }
        return dropped;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Dropped<M>& dropped) const {
        store_pack(y, i, dropped.y, add);
        store_raw(mask, i, dropped.mask);
    }
};

template <class T>
struct Backward {
    const T* dy;
    const std::uint8_t* mask;
    T* dx;
    float factor;
    bool add;
    template <int M>
    __host__ __device__ Pack<float, M> compute(std::int64_t i) const {
        Pack<float, M> values = load_pack<M>(dy, i);
        const Pack<std::uint8_t, M> kept = raw_pack<M>(mask, i);
        for (int k = 0; k < M; ++k) values.at[k] = kept.at[k] != 0 ? values.at[k] * factor : 0.0F;
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, M>& values) const {
        store_pack(dx, i, values, add);
    }
};

template <class T>
std::unique_ptr<Kernel> make_forward(const step::Dropout& op, const Operands& o, std::uint64_t seed) {
    constexpr int N = pack_of<T>;
    const auto probability = static_cast<float>(op.probability);
    Forward<T> body{pointer<T>(o.in[0]),
                    pointer<T>(o.out[0]),
                    pointer<std::uint8_t>(o.out[1]),
                    Draw{seed, op.stream, 0, probability},
                    1.0F / (1.0F - probability),
                    false,
                    RowMajorIndex(o.out[0]),
                    DevicePlace(o.out[0])};
    const bool has_packs = body.index.is_identity() && body.place.has_stretches_of(N) &&
                           elements_before_packs<N>(body.x, body.y, body.mask) == 0;
    return make_function_kernel([=, access = o.out[0].access](const Moment& moment, cudaStream_t stream) mutable {
        body.draw.stream = op.stream + static_cast<std::uint64_t>(moment.step);
        body.draw.first = static_cast<std::uint64_t>(moment.micro_batch * body.place.elements());
        body.add = adds(access, moment);
        launch_packs<N>(op.count, has_packs ? 0 : -1, body, stream);
    });
}

template <class T>
std::unique_ptr<Kernel> make_backward(const step::Dropout& op, const Operands& o) {
    constexpr int N = pack_of<T>;
    Backward<T> body{pointer<T>(o.in[0]), pointer<std::uint8_t>(o.in[1]), pointer<T>(o.out[0]),
                     1.0F / (1.0F - static_cast<float>(op.probability)), false};
    const std::int64_t head = elements_before_packs<N>(body.dy, body.mask, body.dx);
    return make_function_kernel(
        [=, n = op.count, access = o.out[0].access](const Moment& moment, cudaStream_t stream) mutable {
            body.add = adds(access, moment);
            launch_packs<N>(n, head, body, stream);
        });
}

}  // namespace

std::unique_ptr<Kernel> make_dropout(const step::Dropout& op, const Operands& o, const KernelSetup& setup) {
    const bool is_forward = op.pass == step::Pass::forward;
    expect_slots(o, is_forward ? 1 : 2, is_forward ? 2 : 1, "dropout");
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        return is_forward ? make_forward<T>(op, o, setup.seed) : make_backward<T>(op, o);
    });
}

}  // namespace lockstep::gpu
