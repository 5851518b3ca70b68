// Convolutions in plain loops, on floats: images [n, h, w, c], weights [k, kh, kw, c of a group].
#pragma once

#include <vector>

#include "gpu_double/dnn/state.hpp"

namespace lockstep::gpu_double {

/// A convolution's descriptors as they are when it is asked about or run.
struct ConvolutionProblem {
    Image x, y;
    Filter w;
    ConvolutionSettings settings;
};

enum class ConvolutionPass { forward, backward_data, backward_weights };

/// What the pass makes of the other two: y of x and w, x of y and w, w of x and y.
std::vector<float> convolve(const ConvolutionProblem& problem, ConvolutionPass pass, const std::vector<float>& x,
                            const std::vector<float>& w, const std::vector<float>& y);

}  // namespace lockstep::gpu_double
