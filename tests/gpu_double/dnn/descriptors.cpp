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
}
