// Weights between row-major and the order that convolutions take: [out, kh, kw, in].
#include "gpu/element.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/place.cuh"

namespace lockstep::gpu {
namespace {

/// Element `stored` of the channels-last side.
template <class From, class To>
struct Reordered {
    const From* from;
    To* to;
    RowMajorIndex index;
    bool is_last_written, add;
    __host__ __device__ void operator()(std::int64_t stored) const {
        const std::int64_t row_major = index(stored);
        const float value = load(from[is_last_written ? row_major : stored]);
        write(to[is_last_written ? stored : row_major], value, add);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_reorder(const step::Reorder&, const Operands& o) {
    expect_slots(o, 1, 1, "reorder");
    const RowMajorIndex read(o.in[0]), written(o.out[0]);
    if (read.is_identity() == written.is_identity()) return make_copy(1, o);
    return with_type(o.in[0].dtype, [&](auto source) {
        return with_type(o.out[0].dtype, [&](auto target) -> std::unique_ptr<Kernel> {
            using From = decltype(source);
            using To = decltype(target);
            Reordered<From, To> body{pointer<From>(o.in[0]), pointer<To>(o.out[0]),
                                     written.is_identity() ? read : written, !written.is_identity(), false};
            return make_function_kernel([body, n = o.in[0].elements(), access = o.out[0].access](
                                            const Moment& moment, cudaStream_t stream) mutable {
                body.add = adds(access, moment);
                launch_elements(n, body, stream);
            });
        });
    });
}

}  // namespace lockstep::gpu
