// Errors: of a device, of a thread, by name.
#include <fmt/format.h>

#include <array>
#include <map>
#include <mutex>
#include <thread>

#include "gpu_double/runtime/api.hpp"

namespace lockstep::gpu_double {
namespace {

struct Text {
    cudaError_t error;
    const char* name;
    const char* text;
};
// Names and texts as the real runtime gives them.
constexpr std::array texts = {
    Text{cudaSuccess, "cudaSuccess", "no error"},
    Text{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    Text{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    Text{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    Text{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
         "CUDA driver version is insufficient for CUDA runtime version"},
    Text{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    Text{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    Text{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    Text{cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    Text{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    Text{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    Text{cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    Text{cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    Text{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    Text{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};
const Text* find(cudaError_t error) {
    for (const Text& text : texts)
        if (text.error == error) return &text;
    return nullptr;
}

bool is_sticky(cudaError_t error) {
    return error == cudaErrorECCUncorrectable || error == cudaErrorIllegalAddress || error == cudaErrorAssert ||
           error == cudaErrorLaunchFailure;
}

thread_local cudaError_t last_error = cudaSuccess;

struct Failures {
    std::mutex mutex;
    std::map<int, cudaError_t> of_device;
};
Failures& failures() {
    static Failures& failures = *new Failures;
    return failures;
}

}  // namespace

cudaError_t device_failure(int device) {
    const std::lock_guard lock(failures().mutex);
    const auto found = failures().of_device.find(device);
    return found == failures().of_device.end() ? cudaSuccess : found->second;
}

void fail_device(int device, cudaError_t error) {
    const std::lock_guard lock(failures().mutex);
    failures().of_device.emplace(device, error);
}

void wait_forever() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

cudaError_t enter(const char* function, bool enqueues, bool& hangs) {
    if (controls()->driver / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
    const Fate fate = double_call(function);
    if (fate.hangs && !enqueues) wait_forever();
    hangs = fate.hangs;
    if (fate.fails) {
        const auto error = static_cast<cudaError_t>(fate.code_or(cudaErrorUnknown));
        if (is_sticky(error)) fail_device(current_device(), error);
        return error;
    }
    return device_failure(current_device());
}

cudaError_t leave(cudaError_t result) {
    if (result != cudaSuccess && result != cudaErrorNotReady) last_error = result;
    return result;
}

cudaError_t misuse(cudaError_t code, const std::string& text) {
    report_misuse(text);
    return code;
}

}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = device_failure(current_device());
    return error;
}

const char* cudaGetErrorName(cudaError_t error) {
    const Text* text = find(error);
    return text ? text->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    const Text* text = find(error);
    return text ? text->text : "unrecognized error code";
}
}
