// Checks what CUDA runtime calls return.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

namespace lockstep::gpu {

/// Throws RuntimeError "CALL failed: CODE NAME (text) at file:line" unless the call succeeded; what to do follows where
/// lockstep knows it (no driver, out of memory, an earlier kernel's fault).
void check_cuda(cudaError_t result, const char* call, std::source_location where = std::source_location::current());

}  // namespace lockstep::gpu
