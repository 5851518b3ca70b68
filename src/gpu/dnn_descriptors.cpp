#include "gpu/dnn_descriptors.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

int extent(std::int64_t value) {
    if (value < 0 || value > most)
        throw RuntimeError(
            fmt::format("an extent of {} is beyond cuDNN's 32 bits; use a smaller batch_per_rank", value));
    return static_cast<int>(value);
}

}  // namespace

cudnnDataType_t dnn_type(DType dtype) {
    switch (dtype) {
        case DType::fp32: return CUDNN_DATA_FLOAT;
        case DType::fp16: return CUDNN_DATA_HALF;
        case DType::bf16: return CUDNN_DATA_BFLOAT16;
        default: throw LogicError("no cuDNN op on elements of type " + std::string(to_string(dtype)));
    }
}

TensorDescriptor make_image(DType dtype, std::int64_t n, std::int64_t channels, std::int64_t height,
                            std::int64_t width) {
    if (n * channels * height * width > most)
        throw RuntimeError(
            fmt::format("an image of {} x {} x {} x {} (batch, channels, height, width) has more elements "
                        "than cuDNN's 32-bit indices reach; use a smaller batch_per_rank",
                        n, channels, height, width));
    cudnnTensorDescriptor_t tensor = nullptr;
    check_dnn(cudnnCreateTensorDescriptor(&tensor), "cudnnCreateTensorDescriptor");
    TensorDescriptor owner(tensor);
    check_dnn(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NHWC, dnn_type(dtype), extent(n), extent(channels),
                                         extent(height), extent(width)),
              "cudnnSetTensor4dDescriptor");
    return owner;
}

}  // namespace lockstep::gpu
