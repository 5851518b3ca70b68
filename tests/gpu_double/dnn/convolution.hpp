// Convolutions in plain loops, on floats: images [n, h, w, c], weights [k, kh, kw, c of a group].
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::gpu_double {

struct ConvolutionShape {
    struct Side {
        std::int64_t n = 0, c = 0, h = 0, w = 0;
        std::int64_t elements() const { return n * c * h * w; }
    };
    Side x, y;
    Side w;  ///< n: output channels, c: of a group
    std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;

    std::int64_t groups() const { return x.c / w.c; }
};

enum class ConvolutionPass { forward, backward_data, backward_weights };

/// What the pass makes of the other two: y of x and w, x of y and w, w of x and y.
std::vector<float> convolve(const ConvolutionShape& shape, ConvolutionPass pass, const std::vector<float>& x,
                            const std::vector<float>& w, const std::vector<float>& y);

}  // namespace lockstep::gpu_double
