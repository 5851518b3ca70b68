// A convolution as a graph of cuDNN's, on channels-last images and weights.
#pragma once

#include "base/dtype.hpp"
#include "gpu/dnn_graph.hpp"
#include "step/op.hpp"

namespace lockstep::gpu {

/// Bytes that divide the addresses.
struct ConvolutionAlignments {
    std::int64_t x = 16, w = 16, y = 16;
};

/// Ids of the graph's tensors: image, weight and result, or what they are the gradients of.
inline constexpr std::int64_t convolution_x = 1, convolution_w = 2, convolution_y = 3;

/// `adds`: to what the result of the pass holds.
DnnGraph make_convolution_graph(const step::Convolution& convolution, DType dtype,
                                const ConvolutionAlignments& alignments, bool adds);

/// "forward", "backward data", "backward weights"
const char* name_of(step::Pass pass);

}  // namespace lockstep::gpu
