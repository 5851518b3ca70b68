#include "gpu/handles.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"

namespace lockstep::gpu {

Stream make_stream(StreamPriority priority) {
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                            priority == StreamPriority::high ? greatest : least),
               "cudaStreamCreateWithPriority");
    return Stream(stream);
}

Event make_event(EventUse use) {
    cudaEvent_t event = nullptr;
    const unsigned flags = use == EventUse::timing ? cudaEventDefault : cudaEventDisableTiming;
    check_cuda(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
    return Event(event);
}

DeviceMemory allocate_device(std::int64_t bytes, const char* purpose) {
    if (bytes <= 0) return {};
    void* memory = nullptr;
    const cudaError_t result = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
    if (result != cudaSuccess)
        check_cuda(result,
                   fmt::format("cudaMalloc of {:.3f} GB for {}", static_cast<double>(bytes) / 1e9, purpose).c_str());
    return DeviceMemory(static_cast<std::byte*>(memory));
}

PinnedMemory allocate_pinned(std::int64_t bytes, const char* purpose) {
    if (bytes <= 0) return {};
    void* memory = nullptr;
    const cudaError_t result = cudaMallocHost(&memory, static_cast<std::size_t>(bytes));
    if (result != cudaSuccess)
        check_cuda(result, fmt::format("cudaMallocHost of {} bytes for {}", bytes, purpose).c_str());
    return PinnedMemory(static_cast<std::byte*>(memory));
}

}  // namespace lockstep::gpu
