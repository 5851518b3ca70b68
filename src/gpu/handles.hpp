// One owner for each CUDA stream, event and block of memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::gpu {

struct StreamDeleter {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<CUstream_st, StreamDeleter>;
enum class StreamPriority { normal, high };
/// Does not synchronise with the default stream.
Stream make_stream(StreamPriority priority = StreamPriority::normal);

struct EventDeleter {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<CUevent_st, EventDeleter>;
enum class EventUse { ordering, timing };  ///< events without times cost less
Event make_event(EventUse use);

struct DeviceDeleter {
    void operator()(std::byte* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<std::byte[], DeviceDeleter>;
/// Throws RuntimeError that says what it was for. 0 bytes: null.
DeviceMemory allocate_device(std::int64_t bytes, const char* purpose);

struct PinnedDeleter {
    void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte[], PinnedDeleter>;
PinnedMemory allocate_pinned(std::int64_t bytes, const char* purpose);

}  // namespace lockstep::gpu
