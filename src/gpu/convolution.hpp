// What cuDNN chose for a convolution: asked once per shape, shared by all convolutions of the same shape.
#pragma once

#include <cudnn.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/dtype.hpp"

namespace lockstep::gpu {

/// All that the choice of an algorithm depends on; images and weights are channels-last. `pass` is a step::Pass.
struct ConvolutionShape {
    int pass = 0;
    DType dtype = DType::fp32;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    std::int64_t n = 0, in_channels = 0, height = 0, width = 0, out_channels = 0, kernel = 0, stride = 0, padding = 0,
                 groups = 0;

    auto operator<=>(const ConvolutionShape&) const = default;
};

struct ConvolutionChoice {
    int algorithm = 0;  ///< cudnnConvolutionFwdAlgo_t, ...BwdDataAlgo_t or ...BwdFilterAlgo_t
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    std::size_t workspace = 0;  ///< bytes
    std::string text;           ///< "cuDNN forward algorithm 1, math 1, deterministic"
};

using ConvolutionChoices = std::map<ConvolutionShape, ConvolutionChoice>;

}  // namespace lockstep::gpu
