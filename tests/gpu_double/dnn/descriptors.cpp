// Handles and descriptors of cuDNN's interface.
#include <fmt/format.h>

#include "gpu_double/dnn/state.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {
namespace {

template <class Table, class Handle>
cudnnStatus_t create(const char* function, Table& table, Handle* handle) {
    return dnn_call(function, [&](bool) {
        using State = typename decltype(table.find(*handle))::element_type;
        *handle = table.add(std::make_shared<State>());
        return CUDNN_STATUS_SUCCESS;
    });
}

template <class Table, class Handle>
cudnnStatus_t destroy(const char* function, Table& table, Handle handle) {
    return dnn_call(function, [&](bool) {
        return table.remove(handle) ? CUDNN_STATUS_SUCCESS
                                    : dnn_misuse(fmt::format("{}: there is none such (destroyed?)", function));
    });
}

/// body(state) -> cudnnStatus_t of a live descriptor.
template <class Table, class Handle, class Body>
cudnnStatus_t with(const char* function, Table& table, Handle handle, Body body) {
    return dnn_call(function, [&](bool) {
        const auto state = table.find(handle);
        return state ? body(*state) : dnn_misuse(fmt::format("{}: there is none such (destroyed?)", function));
    });
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
        case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
        case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
        case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
        case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
        default: return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    return dnn_call("cudnnCreate", [&](bool) {
        const int device = current_device();
        if (device < 0) return dnn_error(CUDNN_STATUS_NOT_INITIALIZED, "there is no device");
        *handle = dnn().handles.add(std::make_shared<DnnHandle>(DnnHandle{device, nullptr}));
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy("cudnnDestroy", dnn().handles, handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    return with("cudnnSetStream", dnn().handles, handle, [&](DnnHandle& h) {
        if (device_of(stream) != h.device)
            return dnn_misuse("cudnnSetStream: the stream is of another device than the handle");
        h.stream = stream;
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* image) {
    return create("cudnnCreateTensorDescriptor", dnn().images, image);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t image) {
    return destroy("cudnnDestroyTensorDescriptor", dnn().images, image);
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t image, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    constexpr const char* function = "cudnnSetTensor4dDescriptor";
    return with(function, dnn().images, image, [&](Image& i) {
        if (n < 1 || c < 1 || h < 1 || w < 1)
            return dnn_misuse(fmt::format("{}: extents {} x {} x {} x {}", function, n, c, h, w));
        i = {format, type, n, c, h, w};
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
    return create("cudnnCreateFilterDescriptor", dnn().filters, filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
    return destroy("cudnnDestroyFilterDescriptor", dnn().filters, filter);
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    constexpr const char* function = "cudnnSetFilter4dDescriptor";
    return with(function, dnn().filters, filter, [&](Filter& f) {
        if (k < 1 || c < 1 || h < 1 || w < 1)
            return dnn_misuse(fmt::format("{}: extents {} x {} x {} x {}", function, k, c, h, w));
        f = {format, type, k, c, h, w};
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
    return create("cudnnCreateConvolutionDescriptor", dnn().convolutions, convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
    return destroy("cudnnDestroyConvolutionDescriptor", dnn().convolutions, convolution);
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
    constexpr const char* function = "cudnnSetConvolution2dDescriptor";
    return with(function, dnn().convolutions, convolution, [&](ConvolutionSettings& c) {
        if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1)
            return dnn_misuse(
                fmt::format("{}: padding {} x {}, stride {} x {}", function, pad_h, pad_w, stride_h, stride_w));
        if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION)
            return dnn_misuse(fmt::format("{}: dilated and flipped kernels are unknown to the double", function));
        c.pad_h = pad_h;
        c.pad_w = pad_w;
        c.stride_h = stride_h;
        c.stride_w = stride_w;
        c.compute = compute;
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
    return with("cudnnSetConvolutionGroupCount", dnn().convolutions, convolution, [&](ConvolutionSettings& c) {
        if (groups < 1) return dnn_misuse(fmt::format("cudnnSetConvolutionGroupCount: {} groups", groups));
        c.groups = groups;
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
    return with("cudnnSetConvolutionMathType", dnn().convolutions, convolution, [&](ConvolutionSettings& c) {
        c.math = math;
        return CUDNN_STATUS_SUCCESS;
    });
}
}
