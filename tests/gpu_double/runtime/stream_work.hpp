// What the doubles of the libraries need of the runtime's: work on streams, and which memory is a device's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "gpu_double/control.hpp"

namespace lockstep::gpu_double {

/// Appends work to a stream's queue; null is the current device's default stream. False, and a misuse reported, when
/// there is no such stream. An exception in it is the device's error from then on, as that of a kernel.
bool enqueue(cudaStream_t stream, std::function<void()> work);
/// Device of a stream as the machine numbers them, whatever is visible; -1: no such stream.
int device_of(cudaStream_t stream);

/// Whether the bytes lie within one live block of device memory. 0 bytes: any address will do.
bool is_device_range(const void* begin, std::size_t bytes);
/// As the former; reports what is wrong as a misuse: "cublasLtMatmul: A is not within a block of device memory".
bool expect_device_range(const void* begin, std::size_t bytes, const char* what);

/// For work that hangs.
[[noreturn]] void wait_forever();

/// The calling thread's device, as the machine numbers them; -1: none.
int current_device();

}  // namespace lockstep::gpu_double
