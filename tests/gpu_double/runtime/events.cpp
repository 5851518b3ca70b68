// Events: a place in a stream, and the time at which the stream got there.
#include <fmt/format.h>

#include <chrono>

#include "gpu_double/handle_table.hpp"
#include "gpu_double/runtime/api.hpp"
#include "gpu_double/runtime/stream_queue.hpp"

namespace lockstep::gpu_double {
namespace {

using Clock = std::chrono::steady_clock;

/// What a cudaEventRecord captured.
struct Record {
    std::shared_ptr<StreamQueue> stream;
    std::uint64_t position = 0;
    std::shared_ptr<Clock::time_point> time;  ///< valid once the stream reached the position

    bool complete() const { return stream->reached(position); }
};

struct EventState {
    int device = 0;
    bool timed = true;
    std::mutex mutex;
    std::shared_ptr<const Record> last;

    std::shared_ptr<const Record> record() {
        const std::lock_guard lock(mutex);
        return last;
    }
};

using Events = HandleTable<cudaEvent_t, EventState>;
std::vector<std::string> leaks();
Events& events() {
    static Events& events = *[] {
        add_leak_check(leaks);
        return new Events(2);
    }();
    return events;
}
std::vector<std::string> leaks() {
    const std::size_t count = events().all().size();
    if (count == 0) return {};
    return {fmt::format("{} events were not destroyed", count)};
}

std::shared_ptr<EventState> find_event(cudaEvent_t event, const char* function) {
    auto state = events().find(event);
    if (!state) report_misuse(fmt::format("{}: no such event (destroyed?)", function));
    return state;
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return api("cudaEventCreateWithFlags", [&] {
        if ((flags & ~(cudaEventDisableTiming | cudaEventBlockingSync)) != 0)
            return misuse(cudaErrorInvalidValue, fmt::format("cudaEventCreateWithFlags: flags {}", flags));
        auto state = std::make_shared<EventState>();
        state->device = current_device();
        state->timed = (flags & cudaEventDisableTiming) == 0;
        if (state->device < 0) return cudaErrorNoDevice;
        *event = events().add(std::move(state));
        return cudaSuccess;
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return api("cudaEventDestroy", [&] {
        if (events().remove(event)) return cudaSuccess;
        return misuse(cudaErrorInvalidResourceHandle, "cudaEventDestroy: no such event (destroyed?)");
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return api("cudaEventRecord", [&](bool hangs) {
        const auto state = find_event(event, "cudaEventRecord");
        const auto queue = find_stream(stream, "cudaEventRecord");
        if (!state || !queue) return cudaErrorInvalidResourceHandle;
        if (state->device != queue->device())
            return misuse(cudaErrorInvalidResourceHandle, "cudaEventRecord: event and stream are of two devices");
        const std::lock_guard lock(state->mutex);
        auto time = std::make_shared<Clock::time_point>();
        const std::uint64_t position = queue->push([=] { hangs ? wait_forever() : void(*time = Clock::now()); });
        state->last = std::make_shared<Record>(Record{queue, position, time});
        return cudaSuccess;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return api("cudaStreamWaitEvent", [&](bool hangs) {
        const auto state = find_event(event, "cudaStreamWaitEvent");
        const auto queue = find_stream(stream, "cudaStreamWaitEvent");
        if (!state || !queue) return cudaErrorInvalidResourceHandle;
        if (flags != 0) return misuse(cudaErrorInvalidValue, "cudaStreamWaitEvent: flags");
        if (const auto record = state->record(); record || hangs)  // else as in CUDA: nothing to wait for
            queue->push([=] { hangs ? wait_forever() : record->stream->wait(record->position); });
        return cudaSuccess;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return api("cudaEventQuery", [&] {
        const auto state = find_event(event, "cudaEventQuery");
        if (!state) return cudaErrorInvalidResourceHandle;
        const auto record = state->record();
        return !record || record->complete() ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return api("cudaEventSynchronize", [&] {
        const auto state = find_event(event, "cudaEventSynchronize");
        if (!state) return cudaErrorInvalidResourceHandle;
        if (const auto record = state->record()) record->stream->wait(record->position);
        return device_failure(state->device);
    });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return api("cudaEventElapsedTime", [&] {
        const auto a = find_event(start, "cudaEventElapsedTime"), b = find_event(end, "cudaEventElapsedTime");
        if (!a || !b) return cudaErrorInvalidResourceHandle;
        if (!a->timed || !b->timed)
            return misuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: an event without times");
        const auto from = a->record(), to = b->record();
        if (!from || !to)
            return misuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: an event was never recorded");
        if (a->device != b->device)
            return misuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: events of two devices");
        if (!from->complete() || !to->complete()) return cudaErrorNotReady;
        *milliseconds = std::chrono::duration<float, std::milli>(*to->time - *from->time).count();
        return cudaSuccess;
    });
}
}
