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

}  // namespace lockstep::gpu
