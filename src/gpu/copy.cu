// Copies with a factor, casts and fills.
#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

template <class From, class To>
struct Convert {
    const From* from;
    To* to;
    float factor;
    bool add;
    template <int M>
    __host__ __device__ Pack<float, M> compute(std::int64_t i) const {
        Pack<float, M> values = load_pack<M>(from, i);
        for (int k = 0; k < M; ++k) values.at[k] *= factor;
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, M>& values) const {
        store_pack(to, i, values, add);
    }
};

template <class T>
struct Constant {
    T* y;
    float value;
    template <int M>
    __host__ __device__ Pack<float, M> compute(std::int64_t) const {
        Pack<float, M> values{};
        for (int k = 0; k < M; ++k) values.at[k] = value;
        return values;
    }
    template <int M>
    __host__ __device__ void store(std::int64_t i, const Pack<float, M>& values) const {
        store_pack(y, i, values);
    }
};

template <class From, class To>
std::unique_ptr<Kernel> make_convert(double factor, const Operand& from, const Output& to) {
    return make_function_kernel([from = pointer<From>(from), to = pointer<To>(to), n = from.elements(),
                                 factor = static_cast<float>(factor),
                                 access = to.access](const Moment& moment, cudaStream_t stream) {
        constexpr int N = pack_of<From, To>;
        launch_packs<N>(n, elements_before_packs<N>(from, to),
                        Convert<From, To>{from, to, factor, adds(access, moment)}, stream);
    });
}

}  // namespace

std::unique_ptr<Kernel> make_copy(double factor, const Operands& o) {
    expect_slots(o, 1, 1, "copy");
    const Operand& from = o.in[0];
    const Output& to = o.out[0];
    if (from.elements() != to.elements()) throw LogicError("a copy between tensors of different size");
    if (from.dtype == to.dtype && factor == 1 && !can_add(to.access))
        return make_function_kernel([source = from.data, target = to.data,
                                     bytes = static_cast<std::size_t>(from.bytes())](const Moment&, cudaStream_t s) {
            check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, s), "cudaMemcpyAsync");
        });
    return with_type(from.dtype, [&](auto source) {
        return with_type(
            to.dtype, [&](auto target) { return make_convert<decltype(source), decltype(target)>(factor, from, to); });
    });
}

std::unique_ptr<Kernel> make_fill(const step::Fill& op, const Operands& o) {
    expect_slots(o, 0, 1, "fill");
    const Output& y = o.out[0];
    if (op.value == 0)
        return make_function_kernel(
            [data = y.data, bytes = static_cast<std::size_t>(y.bytes())](const Moment&, cudaStream_t stream) {
                check_cuda(cudaMemsetAsync(data, 0, bytes, stream), "cudaMemsetAsync");
            });
    return with_type(y.dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel([data = pointer<T>(y), n = y.elements(), value = static_cast<float>(op.value)](
                                        const Moment&, cudaStream_t stream) {
            constexpr int N = pack_of<T>;
            launch_packs<N>(n, elements_before_packs<N>(data), Constant<T>{data, value}, stream);
        });
    });
}

}  // namespace lockstep::gpu
