#include "gpu/dnn_backend.hpp"

#include <fmt/format.h>

#include "gpu/libraries.hpp"

namespace lockstep::gpu {

DnnDescriptor::DnnDescriptor(cudnnBackendDescriptorType_t type, Where where) {
    cudnnBackendDescriptor_t descriptor = nullptr;
    check_dnn(cudnnBackendCreateDescriptor(type, &descriptor), "cudnnBackendCreateDescriptor", where);
    descriptor_.reset(descriptor);
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                        const void* values, Where where) {
    const cudnnStatus_t result = cudnnBackendSetAttribute(get(), name, type, count, values);
    if (result != CUDNN_STATUS_SUCCESS)
        check_dnn(result, fmt::format("cudnnBackendSetAttribute of {}", static_cast<int>(name)).c_str(), where);
}
void DnnDescriptor::set(cudnnBackendAttributeName_t name, std::int64_t value, Where where) {
    set(name, CUDNN_TYPE_INT64, 1, &value, where);
}
void DnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values, Where where) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data(), where);
}
void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value, Where where) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value, where);
}
void DnnDescriptor::set(cudnnBackendAttributeName_t name, const DnnDescriptor& value, Where where) {
    const cudnnBackendDescriptor_t descriptor = value.get();
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor, where);
}

void DnnDescriptor::finalize(Where where) { check_dnn(cudnnBackendFinalize(get()), "cudnnBackendFinalize", where); }

bool DnnDescriptor::try_finalize(std::string& why_not) {
    const cudnnStatus_t result = cudnnBackendFinalize(get());
    if (result == CUDNN_STATUS_SUCCESS) return true;
    char last[512] = "";
    cudnnGetLastErrorString(last, sizeof last);
    why_not = fmt::format("{}: {}", cudnnGetErrorString(result), last);
    return false;
}

std::int64_t DnnDescriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                  Where where) const {
    return get(name, type, 0, nullptr, where);
}
std::int64_t DnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t room,
                                void* values, Where where) const {
    std::int64_t count = 0;
    const cudnnStatus_t result = cudnnBackendGetAttribute(get(), name, type, room, &count, values);
    if (result != CUDNN_STATUS_SUCCESS)
        check_dnn(result, fmt::format("cudnnBackendGetAttribute of {}", static_cast<int>(name)).c_str(), where);
    return count;
}

}  // namespace lockstep::gpu
