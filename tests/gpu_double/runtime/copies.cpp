// Copies and fills.
#include <fmt/format.h>

#include <cstring>

#include "gpu_double/runtime/api.hpp"
#include "gpu_double/runtime/memory.hpp"
#include "gpu_double/runtime/stream_queue.hpp"

namespace lockstep::gpu_double {
namespace {

enum class Host { any, pinned };  ///< what memory of the host a copy may use

// Whether a side of a copy is what the copy's direction says, to its last byte.
bool check_side(const char* function, const char* side, const void* address, std::size_t bytes, bool on_device,
                Host host) {
    const auto block = find_block(address);
    const char* wrong = nullptr;
    if (on_device) {
        if (!block || block->pinned)
            wrong = "is no device memory, though the direction says so";
        else if (!block->holds(address, bytes))
            wrong = "goes past the end of its block of device memory";
    } else {
        if (block && !block->pinned)
            wrong = "is device memory, though the direction says otherwise";
        else if (!block && host == Host::pinned)
            wrong = "is pageable memory, so the copy would make the host wait";
        else if (block && !block->holds(address, bytes))
            wrong = "goes past the end of its block of pinned memory";
    }
    if (wrong) report_misuse(fmt::format("{} of {} bytes: the {} {}", function, bytes, side, wrong));
    return !wrong;
}

bool check_copy(const char* function, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Host host) {
    if (kind == cudaMemcpyDefault) {
        report_misuse(fmt::format("{}: say the direction", function));
        return false;
    }
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return check_side(function, "target", to, bytes, to_device, host) &&
           check_side(function, "source", from, bytes, from_device, host);
}

// A copy on the default stream waits for no other stream, so work under way there may still write what it reads.
bool check_idle(int device) {
    for (const auto& stream : streams_of(device))
        if (!stream->is_default() && !stream->idle()) {
            report_misuse("cudaMemcpy while work on another stream is unfinished, which it does not wait for");
            return false;
        }
    return true;
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return api("cudaMemcpyAsync", [&](bool hangs) {
        const auto queue = find_stream(stream, "cudaMemcpyAsync");
        if (!queue) return cudaErrorInvalidResourceHandle;
        if (bytes > 0 && !check_copy("cudaMemcpyAsync", to, from, bytes, kind, Host::pinned))
            return cudaErrorInvalidValue;
        queue->push([=] { hangs ? wait_forever() : void(std::memmove(to, from, bytes)); });
        return cudaSuccess;
    });
}

// On the default stream, which other streams don't wait for.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return api("cudaMemcpy", [&] {
        const auto queue = find_stream(nullptr, "cudaMemcpy");
        if (!queue) return cudaErrorNoDevice;
        if (bytes == 0) return cudaSuccess;
        if (!check_copy("cudaMemcpy", to, from, bytes, kind, Host::any) || !check_idle(queue->device()))
            return cudaErrorInvalidValue;
        queue->wait(queue->push([=] { std::memmove(to, from, bytes); }));
        return device_failure(queue->device());
    });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    return api("cudaMemsetAsync", [&](bool hangs) {
        const auto queue = find_stream(stream, "cudaMemsetAsync");
        if (!queue) return cudaErrorInvalidResourceHandle;
        if (!expect_device_range(to, bytes, "cudaMemsetAsync: the target")) return cudaErrorInvalidValue;
        queue->push([=] { hangs ? wait_forever() : void(std::memset(to, value, bytes)); });
        return cudaSuccess;
    });
}

// As in CUDA the host doesn't wait for it.
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }
}
