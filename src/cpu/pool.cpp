// Max and average pooling on activations in any order. The inner loop runs over 8 neighbouring channels where the
// order has them side by side.
#include <limits>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

/// Addresses in an image: element (channel chunk, pixel) starts at chunk * chunk_stride + pixel * pixel_stride.
struct Planes {
    std::int64_t chunk_stride, pixel_stride;
};

template <int Chunk>
Planes planes_of(Order order, std::int64_t channels, std::int64_t pixels) {
    switch (order) {
        case Order::row_major: return {pixels, 1};
        case Order::channels_last: return {Chunk, channels};
        case Order::blocked8: return {8 * pixels, 8};
        case Order::packed: break;
    }
    throw LogicError("an activation can't be packed");
}

bool has_neighbours(const Operand& o) {
    return o.order == Order::blocked8 || (o.order == Order::channels_last && o.shape[1] % 8 == 0);
}

struct Window {
    std::int64_t first_row, last_row, first_column, last_column;
};

/// The part of output pixel (row, column)'s window that lies in the image.
inline Window window_of(const step::Pool& p, std::int64_t row, std::int64_t column) {
    const std::int64_t top = row * p.stride - p.padding, left = column * p.stride - p.padding;
    return {std::max<std::int64_t>(top, 0), std::min(top + p.kernel, p.height), std::max<std::int64_t>(left, 0),
            std::min(left + p.kernel, p.width)};
}

/// Calls f(image, chunk, row) for all rows of output pixels; rows are split over threads, or whole images are when
/// threads must not share one.
template <class F>
void for_rows(const step::Pool& p, std::int64_t chunks, F f) {
    const std::int64_t rows = p.out_height();
    parallel_rows(p.n * rows, p.out_width() * p.channels, [=](std::int64_t i) {
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) f(i / rows, chunk, i % rows);
    });
}
template <class F>
void for_images(const step::Pool& p, std::int64_t chunks, F f) {
    parallel_rows(p.n * chunks, p.height * p.width * p.channels / chunks,
                  [=](std::int64_t i) { f(i / chunks, i % chunks); });
}

/// Both sides of a pool in chunks of `Chunk` channels.
template <class T, int Chunk>
struct Sides {
    step::Pool pool;
    Planes in, out;
    std::int64_t chunks, image, pooled;
    Sides(const step::Pool& p, Order in_order, Order out_order)
        : pool(p),
          in(planes_of<Chunk>(in_order, p.channels, p.height * p.width)),
          out(planes_of<Chunk>(out_order, p.channels, p.out_height() * p.out_width())),
          chunks(p.channels / Chunk),
          image(p.channels * p.height * p.width),
          pooled(p.channels * p.out_height() * p.out_width()) {}
    std::int64_t at_in(std::int64_t n, std::int64_t chunk, std::int64_t pixel) const {
        return n * image + chunk * in.chunk_stride + pixel * in.pixel_stride;
    }
    std::int64_t at_out(std::int64_t n, std::int64_t chunk, std::int64_t pixel) const {
        return n * pooled + chunk * out.chunk_stride + pixel * out.pixel_stride;
    }
};

/// `indices` (in y's order) get the pixel of each largest element, the first of equals.
template <class T, int Chunk>
void max_forward(const Sides<T, Chunk> s, const T* x, T* y, std::int32_t* indices) {
    for_rows(s.pool, s.chunks, [=](std::int64_t n, std::int64_t chunk, std::int64_t row) {
        for (std::int64_t column = 0; column < s.pool.out_width(); ++column) {
            const Window w = window_of(s.pool, row, column);
            float best[Chunk];
            std::int32_t where[Chunk];
            for (int c = 0; c < Chunk; ++c) {
                best[c] = -std::numeric_limits<float>::infinity();
                where[c] = static_cast<std::int32_t>(w.first_row * s.pool.width + w.first_column);
            }
            for (std::int64_t i = w.first_row; i < w.last_row; ++i)
                for (std::int64_t j = w.first_column; j < w.last_column; ++j) {
                    const auto pixel = static_cast<std::int32_t>(i * s.pool.width + j);
                    const T* from = x + s.at_in(n, chunk, pixel);
                    for (int c = 0; c < Chunk; ++c) {
                        const float value = load(from[c]);
                        where[c] = value > best[c] ? pixel : where[c];
                        best[c] = value > best[c] ? value : best[c];
                    }
                }
            const std::int64_t to = s.at_out(n, chunk, row * s.pool.out_width() + column);
            for (int c = 0; c < Chunk; ++c) y[to + c] = store<T>(best[c]);
            if (indices != nullptr)
                for (int c = 0; c < Chunk; ++c) indices[to + c] = where[c];
        }
    });
}

template <class T, int Chunk>
void clear(const Sides<T, Chunk>& s, T* dx, std::int64_t n, std::int64_t chunk) {
    for (std::int64_t pixel = 0; pixel < s.pool.height * s.pool.width; ++pixel)
        for (int c = 0; c < Chunk; ++c) dx[s.at_in(n, chunk, pixel) + c] = T{};
}

template <class T, int Chunk>
void max_backward(const Sides<T, Chunk> s, const T* dy, const std::int32_t* indices, T* dx) {
    for_images(s.pool, s.chunks, [=](std::int64_t n, std::int64_t chunk) {
        clear(s, dx, n, chunk);
        for (std::int64_t pixel = 0; pixel < s.pool.out_height() * s.pool.out_width(); ++pixel) {
            const std::int64_t from = s.at_out(n, chunk, pixel);
            for (int c = 0; c < Chunk; ++c) {
                T& target = dx[s.at_in(n, chunk, indices[from + c]) + c];
                target = store<T>(load(target) + load(dy[from + c]));
            }
        }
    });
}

/// Padding counts as zeros: the divisor is kernel^2 everywhere (PyTorch's count_include_pad).
template <class T, int Chunk>
void average_forward(const Sides<T, Chunk> s, const T* x, T* y) {
    const float factor = 1.0F / static_cast<float>(s.pool.kernel * s.pool.kernel);
    for_rows(s.pool, s.chunks, [=](std::int64_t n, std::int64_t chunk, std::int64_t row) {
        for (std::int64_t column = 0; column < s.pool.out_width(); ++column) {
            const Window w = window_of(s.pool, row, column);
            float sum[Chunk] = {};
            for (std::int64_t i = w.first_row; i < w.last_row; ++i)
                for (std::int64_t j = w.first_column; j < w.last_column; ++j) {
                    const T* from = x + s.at_in(n, chunk, i * s.pool.width + j);
                    for (int c = 0; c < Chunk; ++c) sum[c] += load(from[c]);
                }
            const std::int64_t to = s.at_out(n, chunk, row * s.pool.out_width() + column);
            for (int c = 0; c < Chunk; ++c) y[to + c] = store<T>(sum[c] * factor);
        }
    });
}

template <class T, int Chunk>
void average_backward(const Sides<T, Chunk> s, const T* dy, T* dx) {
    const float factor = 1.0F / static_cast<float>(s.pool.kernel * s.pool.kernel);
    for_images(s.pool, s.chunks, [=](std::int64_t n, std::int64_t chunk) {
        clear(s, dx, n, chunk);
        for (std::int64_t row = 0; row < s.pool.out_height(); ++row)
            for (std::int64_t column = 0; column < s.pool.out_width(); ++column) {
                const Window w = window_of(s.pool, row, column);
                const T* from = dy + s.at_out(n, chunk, row * s.pool.out_width() + column);
                for (std::int64_t i = w.first_row; i < w.last_row; ++i)
                    for (std::int64_t j = w.first_column; j < w.last_column; ++j) {
                        T* to = dx + s.at_in(n, chunk, i * s.pool.width + j);
                        for (int c = 0; c < Chunk; ++c) to[c] = store<T>(load(to[c]) + load(from[c]) * factor);
                    }
            }
    });
}

template <class T, int Chunk>
std::unique_ptr<Kernel> make_pool_of(const step::Pool& pool, const Operands& o) {
    const bool is_forward = pool.pass == step::Pass::forward, is_max = pool.kind == model::Pool::Kind::max;
    const Operand& image = is_forward ? o.in[0] : static_cast<const Operand&>(o.out[0]);
    const Operand& pooled = is_forward ? static_cast<const Operand&>(o.out[0]) : o.in[0];
    const Sides<T, Chunk> sides(pool, image.order, pooled.order);
    const T* from = pointer<T>(o.in[0]);
    T* to = pointer<T>(o.out[0]);
    if (!is_max) {
        if (is_forward) return make_function_kernel([=](const Moment&) { average_forward(sides, from, to); });
        return make_function_kernel([=](const Moment&) { average_backward(sides, from, to); });
    }
    if (is_forward) {
        std::int32_t* indices = o.out.size() > 1 ? pointer<std::int32_t>(o.out[1]) : nullptr;
        return make_function_kernel([=](const Moment&) { max_forward(sides, from, to, indices); });
    }
    const std::int32_t* indices = integers(o.in[1]);
    return make_function_kernel([=](const Moment&) { max_backward(sides, from, indices, to); });
}

}  // namespace

std::unique_ptr<Kernel> make_pool(const step::Pool& pool, const Operands& o) {
    const bool is_forward = pool.pass == step::Pass::forward;
    expect_slots(o, !is_forward && pool.kind == model::Pool::Kind::max ? 2 : 1, 1, "pool");
    if (o.out[0].access != step::Access::overwrite) throw LogicError("a pool can't add to an activation");
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        if (has_neighbours(o.in[0]) && has_neighbours(o.out[0])) return make_pool_of<T, 8>(pool, o);
        return make_pool_of<T, 1>(pool, o);
    });
}

}  // namespace lockstep::cpu
