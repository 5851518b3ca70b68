#include "gpu/cuda_check.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"

namespace lockstep::gpu {
namespace {

const char* advice(cudaError_t error) {
    switch (error) {
        case cudaErrorInsufficientDriver:
        case cudaErrorNoDevice:
            return "; install an NVIDIA driver that is as new as the CUDA toolkit this was built with (nvidia-smi "
                   "shows "
                   "the installed one), or use --backend cpu";
        case cudaErrorMemoryAllocation:
            return "; another process may hold the device's memory (nvidia-smi lists them), or the step needs a "
                   "smaller "
                   "batch_per_rank";
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchFailure:
        case cudaErrorAssert:
            return "; an earlier kernel failed: run under compute-sanitizer, or with CUDA_LAUNCH_BLOCKING=1, to learn "
                   "which";
        case cudaErrorDevicesUnavailable:
            return "; the device is in exclusive mode and taken, or lost: nvidia-smi tells";
        default: return "";
    }
}

}  // namespace

void check_cuda(cudaError_t result, const char* call, std::source_location where) {
    if (result == cudaSuccess) return;
    cudaGetLastError();  // a non-sticky error is not to be found again by the next check
    throw RuntimeError(fmt::format("{} failed: {} {} ({}) at {}:{}{}", call, static_cast<int>(result),
                                   cudaGetErrorName(result), cudaGetErrorString(result),
                                   std::filesystem::path(where.file_name()).filename().string(), where.line(),
                                   advice(result)));
}

}  // namespace lockstep::gpu
