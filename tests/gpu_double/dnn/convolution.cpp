#include "gpu_double/dnn/convolution.hpp"

#include <algorithm>

namespace lockstep::gpu_double {
namespace {

/// Channels of a group, and where they begin in a pixel of x and of y.
struct Group {
    std::int64_t c, k, first_c, first_k;
};

/// f(pixel of x, pixel of y, place in the kernel) for all pairs that a weight connects.
template <class F>
void for_pairs(const ConvolutionShape& p, F f) {
    for (std::int64_t n = 0; n < p.y.n; ++n)
        for (std::int64_t oh = 0; oh < p.y.h; ++oh)
            for (std::int64_t ow = 0; ow < p.y.w; ++ow)
                for (std::int64_t kh = 0; kh < p.w.h; ++kh)
                    for (std::int64_t kw = 0; kw < p.w.w; ++kw) {
                        const std::int64_t ih = oh * p.stride_h - p.pad_h + kh, iw = ow * p.stride_w - p.pad_w + kw;
                        if (ih < 0 || ih >= p.x.h || iw < 0 || iw >= p.x.w) continue;
                        f((n * p.x.h + ih) * p.x.w + iw, (n * p.y.h + oh) * p.y.w + ow, kh * p.w.w + kw);
                    }
}

/// f(group, first weight of output channel 0 of the group at that place in the kernel).
template <class F>
void for_groups(const ConvolutionShape& p, std::int64_t place, F f) {
    const std::int64_t k = p.w.n / p.groups(), taps = p.w.h * p.w.w;
    for (std::int64_t g = 0; g < p.groups(); ++g) f(Group{p.w.c, k, g * p.w.c, g * k}, (g * k * taps + place) * p.w.c);
}

void add_product(float* to, const float* from, float factor, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

float dot(const float* a, const float* b, std::int64_t count) {
    constexpr std::int64_t lanes = 8;
    float sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    float sum = 0;
    for (; i < count; ++i) sum += a[i] * b[i];
    for (const float part : sums) sum += part;
    return sum;
}

}  // namespace

std::vector<float> convolve(const ConvolutionShape& p, ConvolutionPass pass, const std::vector<float>& x,
                            const std::vector<float>& w, const std::vector<float>& y) {
    const std::int64_t elements = pass == ConvolutionPass::forward         ? p.y.elements()
                                  : pass == ConvolutionPass::backward_data ? p.x.elements()
                                                                           : p.w.elements();
    std::vector<float> result(static_cast<std::size_t>(elements));
    const std::int64_t per_k = p.w.h * p.w.w * p.w.c;  // weights of one output channel
    for_pairs(p, [&](std::int64_t x_pixel, std::int64_t y_pixel, std::int64_t place) {
        for_groups(p, place, [&](const Group& g, std::int64_t first_weight) {
            const std::int64_t x_at = x_pixel * p.x.c + g.first_c, y_at = y_pixel * p.y.c + g.first_k;
            for (std::int64_t k = 0; k < g.k; ++k) {
                const std::int64_t w_at = first_weight + k * per_k;
                switch (pass) {
                    case ConvolutionPass::forward:
                        result[static_cast<std::size_t>(y_at + k)] += dot(x.data() + x_at, w.data() + w_at, g.c);
                        break;
                    case ConvolutionPass::backward_data:
                        add_product(result.data() + x_at, w.data() + w_at, y[static_cast<std::size_t>(y_at + k)], g.c);
                        break;
                    case ConvolutionPass::backward_weights:
                        add_product(result.data() + w_at, x.data() + x_at, y[static_cast<std::size_t>(y_at + k)], g.c);
                        break;
                }
            }
        });
    });
    return result;
}

}  // namespace lockstep::gpu_double
