// Max and average pooling. Own kernels: cuDNN's backward pass wants the forward pass's input and output, while the
// graph keeps the places of the largest elements. Each thread makes one element of the result, so nothing is added by
// atomics and results don't depend on the order of threads.
#include "base/error.hpp"
#include "gpu/divide.cuh"
#include "gpu/element.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"

namespace lockstep::gpu {
namespace {

struct Geometry {
    Divider channels, height, width, pooled_height, pooled_width;
    std::int64_t kernel, stride, padding;
    bool is_channels_last;
    __host__ __device__ std::int64_t pixels() const { return height.divisor() * width.divisor(); }
    __host__ __device__ std::int64_t pooled_pixels() const { return pooled_height.divisor() * pooled_width.divisor(); }
};

/// An element of an image, or of what it is pooled to.
struct Spot {
    std::int64_t image, channel, row, column;
};

__host__ __device__ inline std::int64_t take(std::int64_t& index, const Divider& extent) {
    const std::int64_t all = index;
    index = extent.quotient(all);
    return extent.remainder(all, index);
}

__host__ __device__ inline Spot spot_of(const Geometry& g, std::int64_t index, const Divider& height,
                                        const Divider& width) {
    Spot s{};
    if (g.is_channels_last) s.channel = take(index, g.channels);
    s.column = take(index, width);
    s.row = take(index, height);
    if (!g.is_channels_last) s.channel = take(index, g.channels);
    s.image = index;
    return s;
}

/// Index of the element at another pixel of the spot's image and channel.
__host__ __device__ inline std::int64_t index_of(const Geometry& g, const Spot& s, std::int64_t pixel,
                                                 std::int64_t pixels) {
    const std::int64_t channels = g.channels.divisor();
    return g.is_channels_last ? (s.image * pixels + pixel) * channels + s.channel
                              : (s.image * channels + s.channel) * pixels + pixel;
}

struct Range {
    std::int64_t first, last;  // last is excluded
};

/// Pixels, along one dimension, of the window of pooled pixel `at` that lie in the image.
__host__ __device__ inline Range window_of(const Geometry& g, std::int64_t at, std::int64_t extent) {
    const std::int64_t begin = at * g.stride - g.padding, end = begin + g.kernel;
    return {begin > 0 ? begin : 0, end < extent ? end : extent};
}

/// Pooled pixels, along one dimension, whose windows hold pixel `at`.
__host__ __device__ inline Range windows_over(const Geometry& g, std::int64_t at, std::int64_t pooled_extent) {
    const auto padded = static_cast<std::int32_t>(at + g.padding), kernel = static_cast<std::int32_t>(g.kernel),
               stride = static_cast<std::int32_t>(g.stride);
    const std::int64_t begin = padded < kernel ? 0 : (padded - kernel) / stride + 1, end = padded / stride + 1;
    return {begin, end < pooled_extent ? end : pooled_extent};
}

/// f(index, pixel) for the elements of the image in the window of a pooled element.
template <class F>
__host__ __device__ void for_window(const Geometry& g, const Spot& s, F f) {
    const Range rows = window_of(g, s.row, g.height.divisor()), columns = window_of(g, s.column, g.width.divisor());
    for (std::int64_t i = rows.first; i < rows.last; ++i)
        for (std::int64_t j = columns.first; j < columns.last; ++j) {
            const std::int64_t pixel = i * g.width.divisor() + j;
            f(index_of(g, s, pixel, g.pixels()), pixel);
        }
}

/// f(index) for the pooled elements in whose windows an element of the image is.
template <class F>
__host__ __device__ void for_windows_over(const Geometry& g, const Spot& s, F f) {
    const Range rows = windows_over(g, s.row, g.pooled_height.divisor()),
                columns = windows_over(g, s.column, g.pooled_width.divisor());
    for (std::int64_t i = rows.first; i < rows.last; ++i)
        for (std::int64_t j = columns.first; j < columns.last; ++j)
            f(index_of(g, s, i * g.pooled_width.divisor() + j, g.pooled_pixels()));
}

/// `indices` (null: not kept) get the pixel of each largest element, the first of equals.
template <class T>
struct MaxForward {
    Geometry g;
    const T* x;
    T* y;
    std::int32_t* indices;
    __host__ __device__ void operator()(std::int64_t i) const {
        const Spot s = spot_of(g, i, g.pooled_height, g.pooled_width);
        float best = -INFINITY;
        std::int64_t where = window_of(g, s.row, g.height.divisor()).first * g.width.divisor() +
                             window_of(g, s.column, g.width.divisor()).first;
        for_window(g, s, [&](std::int64_t index, std::int64_t pixel) {
            const float value = load(x[index]);
            if (value > best) {
                best = value;
                where = pixel;
            }
        });
        y[i] = store<T>(best);
        if (indices != nullptr) indices[i] = static_cast<std::int32_t>(where);
    }
};

template <class T>
struct MaxBackward {
    Geometry g;
    const T* dy;
    const std::int32_t* indices;
    T* dx;
    __host__ __device__ void operator()(std::int64_t i) const {
        const Spot s = spot_of(g, i, g.height, g.width);
        const auto pixel = static_cast<std::int32_t>(s.row * g.width.divisor() + s.column);
        float sum = 0;
        for_windows_over(g, s, [&](std::int64_t index) {
            if (indices[index] == pixel) sum += load(dy[index]);
        });
        dx[i] = store<T>(sum);
    }
};

/// Padding counts as zeros: the divisor is kernel^2 everywhere (PyTorch's count_include_pad).
template <class T>
struct AverageForward {
    Geometry g;
    float factor;
    const T* x;
    T* y;
    __host__ __device__ void operator()(std::int64_t i) const {
        const Spot s = spot_of(g, i, g.pooled_height, g.pooled_width);
        float sum = 0;
        for_window(g, s, [&](std::int64_t index, std::int64_t) { sum += load(x[index]); });
        y[i] = store<T>(sum * factor);
    }
};

template <class T>
struct AverageBackward {
    Geometry g;
    float factor;
    const T* dy;
    T* dx;
    __host__ __device__ void operator()(std::int64_t i) const {
        const Spot s = spot_of(g, i, g.height, g.width);
        float sum = 0;
        for_windows_over(g, s, [&](std::int64_t index) { sum += load(dy[index]); });
        dx[i] = store<T>(sum * factor);
    }
};

template <class Body>
std::unique_ptr<Kernel> make_pass(std::int64_t elements, const Body& body) {
    return make_function_kernel([=](const Moment&, cudaStream_t stream) { launch_elements(elements, body, stream); });
}

Geometry geometry_of(const step::Pool& p, const Operands& o) {
    return {Divider(p.channels),
            Divider(p.height),
            Divider(p.width),
            Divider(p.out_height()),
            Divider(p.out_width()),
            p.kernel,
            p.stride,
            p.padding,
            o.in[0].layout != step::Layout::row_major};
}

void check(const step::Pool& p, const Operands& o) {
    const bool is_forward = p.pass == step::Pass::forward;
    expect_slots(o, !is_forward && p.kind == model::Pool::Kind::max ? 2 : 1, 1, "pool");
    if (o.out[0].access != step::Access::overwrite) throw LogicError("a pool can't add to an activation");
    if ((o.in[0].layout == step::Layout::row_major) != (o.out[0].layout == step::Layout::row_major))
        throw LogicError("both sides of a pool must be in one order");
}

}  // namespace

std::unique_ptr<Kernel> make_pool(const step::Pool& p, const Operands& o, const KernelSetup&) {
    check(p, o);
    const Geometry g = geometry_of(p, o);
    const bool is_max = p.kind == model::Pool::Kind::max;
    const float factor = 1.0F / static_cast<float>(p.kernel * p.kernel);
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        const T* from = pointer<T>(o.in[0]);
        T* to = pointer<T>(o.out[0]);
        const std::int64_t n = o.out[0].elements();
        if (p.pass == step::Pass::forward) {
            std::int32_t* indices = is_max && o.out.size() > 1 ? integers(o.out[1]) : nullptr;
            return is_max ? make_pass(n, MaxForward<T>{g, from, to, indices})
                          : make_pass(n, AverageForward<T>{g, factor, from, to});
        }
        return is_max ? make_pass(n, MaxBackward<T>{g, from, integers(o.in[1]), to})
                      : make_pass(n, AverageBackward<T>{g, factor, from, to});
    });
}

}  // namespace lockstep::gpu
