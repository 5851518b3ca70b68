// The handles and descriptors of the cuDNN double, and the frame of every call.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <string>

#include "gpu_double/control.hpp"
#include "gpu_double/elements.hpp"
#include "gpu_double/handle_table.hpp"

namespace lockstep::gpu_double {

struct DnnHandle {
    int device = 0;
    cudaStream_t stream = nullptr;
};
/// An image or a row of parameters; extents are 0 until it is set.
struct Image {
    cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::int64_t n = 0, c = 0, h = 0, w = 0;

    std::int64_t pixels() const { return h * w; }
    std::int64_t elements() const { return n * c * h * w; }
    bool operator==(const Image&) const = default;
};

struct DnnState {
    HandleTable<cudnnHandle_t, DnnHandle> handles{24};
    HandleTable<cudnnTensorDescriptor_t, Image> images{25};
};
DnnState& dnn();

/// Of floating types of up to 32 bits; empty for others.
std::optional<Element> element_of(cudnnDataType_t type);

/// Keeps `text` as the calling thread's last error and returns `status`.
cudnnStatus_t dnn_error(cudnnStatus_t status, const std::string& text);
/// Reports it and returns CUDNN_STATUS_BAD_PARAM.
cudnnStatus_t dnn_misuse(const std::string& text);

/// body(hangs) -> cudnnStatus_t, unless the test wants the call to fail.
template <class Body>
cudnnStatus_t dnn_call(const char* function, Body body) {
    const Fate fate = double_call(function);
    if (fate.fails)
        return dnn_error(static_cast<cudnnStatus_t>(fate.code_or(CUDNN_STATUS_EXECUTION_FAILED)),
                         "as the test wants it");
    return body(fate.hangs);
}

}  // namespace lockstep::gpu_double
