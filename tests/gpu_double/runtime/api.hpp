// The frame of every runtime call: is there a driver, has the device failed, shall this call fail or hang; and what the
// calling thread's last error is.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <type_traits>

#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {

/// The error to return at once, or cudaSuccess. `hangs`: the work that the call enqueues shall never complete.
cudaError_t enter(const char* function, bool enqueues, bool& hangs);
/// Keeps an error as the thread's last one and returns it.
cudaError_t leave(cudaError_t result);

/// body() -> cudaError_t; of a function that enqueues work body(hangs).
template <class Body>
cudaError_t api(const char* function, Body body) {
    constexpr bool enqueues = std::is_invocable_v<Body, bool>;
    bool hangs = false;
    cudaError_t result = enter(function, enqueues, hangs);
    if (result == cudaSuccess) {
        if constexpr (enqueues)
            result = body(hangs);
        else
            result = body();
    }
    return leave(result);
}

/// Reports it and returns `code`.
cudaError_t misuse(cudaError_t code, const std::string& text);

/// From now on calls on the device return this error, as after a kernel's fault.
void fail_device(int device, cudaError_t error);
/// That error, or cudaSuccess.
cudaError_t device_failure(int device);

}  // namespace lockstep::gpu_double
