// One owner for each cuDNN descriptor.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/dtype.hpp"

namespace lockstep::gpu {

/// Throws LogicError for a type that no tensor of cuDNN's ops has here.
cudnnDataType_t dnn_type(DType dtype);

struct TensorDeleter {
    void operator()(cudnnTensorDescriptor_t tensor) const { cudnnDestroyTensorDescriptor(tensor); }
};
using TensorDescriptor = std::unique_ptr<std::remove_pointer_t<cudnnTensorDescriptor_t>, TensorDeleter>;
/// An image, channels last: stored [n, height, width, channels]. Throws RuntimeError when it is beyond 32-bit extents.
TensorDescriptor make_image(DType dtype, std::int64_t n, std::int64_t channels, std::int64_t height,
                            std::int64_t width);

struct FilterDeleter {
    void operator()(cudnnFilterDescriptor_t filter) const { cudnnDestroyFilterDescriptor(filter); }
};
using FilterDescriptor = std::unique_ptr<std::remove_pointer_t<cudnnFilterDescriptor_t>, FilterDeleter>;
/// A convolution's weight, channels last: stored [out, kernel, kernel, in of a group].
FilterDescriptor make_filter(DType dtype, std::int64_t out_channels, std::int64_t in_channels, std::int64_t kernel);

struct ConvolutionDeleter {
    void operator()(cudnnConvolutionDescriptor_t convolution) const { cudnnDestroyConvolutionDescriptor(convolution); }
};
using ConvolutionDescriptor = std::unique_ptr<std::remove_pointer_t<cudnnConvolutionDescriptor_t>, ConvolutionDeleter>;
/// Accumulates in fp32; the kernel is not flipped, as networks have it (cross-correlation).
ConvolutionDescriptor make_convolution_descriptor(std::int64_t stride, std::int64_t padding, std::int64_t groups,
                                                  cudnnMathType_t math);

}  // namespace lockstep::gpu
