// Max and average pooling. Own kernels: cuDNN's backward pass wants the forward pass's input and output, while the
// graph keeps the places of the largest elements. Each thread makes one element of the result, so nothing is added by
// atomics and results don't depend on the order of threads.
#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "gpu/element.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"

namespace lockstep::gpu {
namespace {

/// Of 32 bits: 64-bit divisions take several times as long.
struct Geometry {
    std::uint32_t channels, height, width, pooled_height, pooled_width;
    std::int32_t kernel, stride, padding;
    bool is_channels_last;
};

/// An element of an image, or of what it is pooled to.
struct Spot {
    std::uint32_t image, channel, row, column;
};

__host__ __device__ inline std::uint32_t take(std::uint32_t& index, std::uint32_t extent) {
    const std::uint32_t part = index % extent;
    index /= extent;
    return part;
}

__host__ __device__ inline Spot spot_of(const Geometry& g, std::uint32_t index, std::uint32_t height,
                                        std::uint32_t width) {
    Spot s{};
    if (g.is_channels_last) s.channel = take(index, g.channels);
    s.column = take(index, width);
    s.row = take(index, height);
    if (!g.is_channels_last) s.channel = take(index, g.channels);
    s.image = index;
    return s;
}

/// Index of the element at another pixel of the spot's image and channel.
__host__ __device__ inline std::uint32_t index_of(const Geometry& g, const Spot& s, std::uint32_t pixel,
                                                  std::uint32_t pixels) {
    return g.is_channels_last ? (s.image * pixels + pixel) * g.channels + s.channel
                              : (s.image * g.channels + s.channel) * pixels + pixel;
}

struct Range {
    std::int32_t first, last;  // last is excluded
};

/// Pixels, along one dimension, of the window of pooled pixel `at` that lie in the image.
__host__ __device__ inline Range window_of(const Geometry& g, std::uint32_t at, std::uint32_t extent) {
    const std::int32_t begin = static_cast<std::int32_t>(at) * g.stride - g.padding, end = begin + g.kernel;
    const auto most = static_cast<std::int32_t>(extent);
    return {begin > 0 ? begin : 0, end < most ? end : most};
}

/// Pooled pixels, along one dimension, whose windows hold pixel `at`.
__host__ __device__ inline Range windows_over(const Geometry& g, std::uint32_t at, std::uint32_t pooled_extent) {
    const std::int32_t padded = static_cast<std::int32_t>(at) + g.padding;
    const std::int32_t begin = padded < g.kernel ? 0 : (padded - g.kernel) / g.stride + 1, end = padded / g.stride + 1;
    const auto most = static_cast<std::int32_t>(pooled_extent);
    return {begin, end < most ? end : most};
}

/// f(index, pixel) for the elements of the image in the window of a pooled element.
template <class F>
__host__ __device__ void for_window(const Geometry& g, const Spot& s, F f) {
    const Range rows = window_of(g, s.row, g.height), columns = window_of(g, s.column, g.width);
    for (std::int32_t i = rows.first; i < rows.last; ++i)
        for (std::int32_t j = columns.first; j < columns.last; ++j) {
            const std::uint32_t pixel = static_cast<std::uint32_t>(i) * g.width + static_cast<std::uint32_t>(j);
            f(index_of(g, s, pixel, g.height * g.width), pixel);
        }
}

/// f(index) for the pooled elements in whose windows an element of the image is.
template <class F>
__host__ __device__ void for_windows_over(const Geometry& g, const Spot& s, F f) {
    const Range rows = windows_over(g, s.row, g.pooled_height), columns = windows_over(g, s.column, g.pooled_width);
    for (std::int32_t i = rows.first; i < rows.last; ++i)
        for (std::int32_t j = columns.first; j < columns.last; ++j) {
            const std::uint32_t pixel = static_cast<std::uint32_t>(i) * g.pooled_width + static_cast<std::uint32_t>(j);
            f(index_of(g, s, pixel, g.pooled_height * g.pooled_width));
        }
}

/// `indices` (null: not kept) get the pixel of each largest element, the first of equals.
template <class T>
struct MaxForward {
    Geometry g;
    const T* x;
    T* y;
    std::int32_t* indices;
    __host__ __device__ void operator()(std::int64_t i) const {
        const Spot s = spot_of(g, static_cast<std::uint32_t>(i), g.pooled_height, g.pooled_width);
        float best = -INFINITY;
        auto where =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(window_of(g, s.row, g.height).first) * g.width +
                                      static_cast<std::uint32_t>(window_of(g, s.column, g.width).first));
        for_window(g, s, [&](std::uint32_t index, std::uint32_t pixel) {
            const float value = load(x[index]);
            if (value > best) {
                best = value;
                where = static_cast<std::int32_t>(pixel);
            }
        });
        y[i] = store<T>(best);
        if (indices != nullptr) indices[i] = where;
    }
};

template <class T>
struct MaxBackward {
    Geometry g;
    const T* dy;
    const std::int32_t* indices;
    T* dx;
    __host__ __device__ void operator()(std::int64_t i) const {
        const Spot s = spot_of(g, static_cast<std::uint32_t>(i), g.height, g.width);
        const auto pixel = static_cast<std::int32_t>(s.row * g.width + s.column);
        float sum = 0;
        for_windows_over(g, s, [&](std::uint32_t index) {
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
        const Spot s = spot_of(g, static_cast<std::uint32_t>(i), g.pooled_height, g.pooled_width);
        float sum = 0;
        for_window(g, s, [&](std::uint32_t index, std::uint32_t) { sum += load(x[index]); });
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
        const Spot s = spot_of(g, static_cast<std::uint32_t>(i), g.height, g.width);
        float sum = 0;
        for_windows_over(g, s, [&](std::uint32_t index) { sum += load(dy[index]); });
        dx[i] = store<T>(sum * factor);
    }
};

template <class Body>
std::unique_ptr<Kernel> make_pass(std::int64_t elements, const Body& body) {
    return make_function_kernel([=](const Moment&, cudaStream_t stream) { launch_elements(elements, body, stream); });
}

Geometry geometry_of(const step::Pool& p, const Operands& o) {
    const auto narrow = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    return {narrow(p.channels),
            narrow(p.height),
            narrow(p.width),
            narrow(p.out_height()),
            narrow(p.out_width()),
            static_cast<std::int32_t>(p.kernel),
            static_cast<std::int32_t>(p.stride),
            static_cast<std::int32_t>(p.padding),
            o.in[0].layout != step::Layout::row_major};
}

void check(const step::Pool& p, const Operands& o) {
    const bool is_forward = p.pass == step::Pass::forward;
    expect_slots(o, !is_forward && p.kind == model::Pool::Kind::max ? 2 : 1, 1, "pool");
    if (o.out[0].access != step::Access::overwrite) throw LogicError("a pool can't add to an activation");
    if ((o.in[0].layout == step::Layout::row_major) != (o.out[0].layout == step::Layout::row_major))
        throw LogicError("both sides of a pool must be in one order");
    const Operand& image = is_forward ? o.in[0] : static_cast<const Operand&>(o.out[0]);
    if (image.elements() > std::numeric_limits<std::int32_t>::max())
        throw RuntimeError(fmt::format("a pool over {} elements is beyond 32-bit indices; use a smaller batch_per_rank",
                                       image.elements()));
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
