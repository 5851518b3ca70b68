// Streams of the runtime's interface.
#include <fmt/format.h>

#include <map>

#include "gpu_double/handle_table.hpp"
#include "gpu_double/runtime/api.hpp"
#include "gpu_double/runtime/stream_queue.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr int least_priority = 0, greatest_priority = -5;

struct Streams {
    HandleTable<cudaStream_t, StreamQueue> table{1};
    std::mutex mutex;
    std::map<int, std::shared_ptr<StreamQueue>> default_of_device;
    std::vector<std::weak_ptr<StreamQueue>> destroyed;
};

std::vector<std::string> leaks();

Streams& streams() {
    static Streams& streams = *[] {
        add_leak_check(leaks);
        return new Streams;
    }();
    return streams;
}

std::vector<std::string> leaks() {
    std::vector<std::string> lines;
    if (const std::size_t count = streams().table.all().size(); count > 0)
        lines.push_back(fmt::format("{} streams were not destroyed", count));
    const auto devices = controls()->devices;
    for (int device = 0; device < devices; ++device)
        for (const auto& queue : streams_of(device))
            if (!queue->idle()) lines.push_back(fmt::format("work on a stream of device {} is unfinished", device));
    return lines;
}

std::shared_ptr<StreamQueue> default_stream(int device) {
    const std::lock_guard lock(streams().mutex);
    auto& queue = streams().default_of_device[device];
    if (!queue) queue = start_queue(device, true);
    return queue;
}

}  // namespace

std::shared_ptr<StreamQueue> find_stream(cudaStream_t stream, const char* function) {
    if (stream == nullptr || stream == cudaStreamLegacy) {
        const int device = current_device();
        return device < 0 ? nullptr : default_stream(device);
    }
    auto queue = streams().table.find(stream);
    if (!queue) report_misuse(fmt::format("{}: no such stream (destroyed?)", function));
    return queue;
}

std::vector<std::shared_ptr<StreamQueue>> streams_of(int device) {
    std::vector<std::shared_ptr<StreamQueue>> result;
    for (auto& queue : streams().table.all())
        if (queue->device() == device) result.push_back(queue);
    const std::lock_guard lock(streams().mutex);
    if (const auto found = streams().default_of_device.find(device); found != streams().default_of_device.end())
        result.push_back(found->second);
    for (const auto& destroyed : streams().destroyed)
        if (auto queue = destroyed.lock(); queue && queue->device() == device) result.push_back(queue);
    return result;
}

bool enqueue(cudaStream_t stream, std::function<void()> work) {
    const auto queue = find_stream(stream, "enqueue");
    if (queue) queue->push(std::move(work));
    return queue != nullptr;
}

int device_of(cudaStream_t stream) {
    const auto queue = find_stream(stream, "device_of");
    return queue ? queue->device() : -1;
}

}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return api("cudaDeviceGetStreamPriorityRange", [&] {
        *least = least_priority;
        *greatest = greatest_priority;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    return api("cudaStreamCreateWithPriority", [&] {
        if (flags != cudaStreamNonBlocking)
            return misuse(cudaErrorInvalidValue,
                          "cudaStreamCreateWithPriority: streams that wait for the default "
                          "stream hide missing waits; use cudaStreamNonBlocking");
        if (priority > least_priority || priority < greatest_priority)
            return misuse(cudaErrorInvalidValue, fmt::format("cudaStreamCreateWithPriority: priority {}", priority));
        const int device = current_device();
        if (device < 0) return cudaErrorNoDevice;
        *stream = streams().table.add(start_queue(device, false));
        return cudaSuccess;
    });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, least_priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return api("cudaStreamDestroy", [&] {
        const auto queue = streams().table.remove(stream);
        if (!queue) return misuse(cudaErrorInvalidResourceHandle, "cudaStreamDestroy: no such stream (destroyed?)");
        queue->close();
        const std::lock_guard lock(streams().mutex);
        std::erase_if(streams().destroyed, [](const auto& weak) { return weak.expired(); });
        streams().destroyed.push_back(queue);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return api("cudaStreamSynchronize", [&] {
        const auto queue = find_stream(stream, "cudaStreamSynchronize");
        if (!queue) return cudaErrorInvalidResourceHandle;
        queue->wait(queue->last());
        return device_failure(queue->device());
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return api("cudaStreamQuery", [&] {
        const auto queue = find_stream(stream, "cudaStreamQuery");
        if (!queue) return cudaErrorInvalidResourceHandle;
        return queue->idle() ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaDeviceSynchronize() {
    return api("cudaDeviceSynchronize", [&] {
        const int device = current_device();
        if (device < 0) return cudaErrorNoDevice;
        for (const auto& queue : streams_of(device)) queue->wait(queue->last());
        return device_failure(device);
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return api("cudaLaunchHostFunc", [&](bool hangs) {
        const auto queue = find_stream(stream, "cudaLaunchHostFunc");
        if (!queue) return cudaErrorInvalidResourceHandle;
        queue->push([=] { hangs ? wait_forever() : function(data); });
        return cudaSuccess;
    });
}
}
