#include "gpu/libraries.hpp"

#include <fmt/format.h>
#include <nccl.h>

#include <filesystem>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"

namespace lockstep::gpu {
namespace {

std::string place_of(const std::source_location& where) {
    return fmt::format("{}:{}", std::filesystem::path(where.file_name()).filename().string(), where.line());
}

}  // namespace

void check_blas(cublasStatus_t result, const char* call, std::source_location where) {
    if (result == CUBLAS_STATUS_SUCCESS) return;
    throw RuntimeError(fmt::format("{} failed: {} {} ({}) at {}", call, static_cast<int>(result),
                                   cublasLtGetStatusName(result), cublasLtGetStatusString(result), place_of(where)));
}

void check_dnn(cudnnStatus_t result, const char* call, std::source_location where) {
    if (result == CUDNN_STATUS_SUCCESS) return;
    char last[512] = "";
    cudnnGetLastErrorString(last, sizeof last);
    throw RuntimeError(fmt::format("{} failed: {} {} ({}) at {}", call, static_cast<int>(result),
                                   cudnnGetErrorString(result), last, place_of(where)));
}

cublasLtHandle_t BlasLt::handle() {
    if (handle_ == nullptr) {
        cublasLtHandle_t handle = nullptr;
        check_blas(cublasLtCreate(&handle), "cublasLtCreate");
        handle_.reset(handle);
    }
    return handle_.get();
}

std::size_t BlasLt::most_workspace() {
    if (most_workspace_ == 0) {
        int device = 0, major = 0;
        check_cuda(cudaGetDevice(&device), "cudaGetDevice");
        check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
        most_workspace_ = std::size_t{major >= 9 ? 64U : 32U} << 20;
    }
    return most_workspace_;
}

cudnnHandle_t Dnn::handle() {
    if (handle_ == nullptr) {
        cudnnHandle_t handle = nullptr;
        check_dnn(cudnnCreate(&handle), "cudnnCreate");
        handle_.reset(handle);
    }
    return handle_.get();
}

cudnnHandle_t Dnn::on(cudaStream_t stream) {
    check_dnn(cudnnSetStream(handle(), stream), "cudnnSetStream");
    return handle_.get();
}

std::string library_versions() {
    const auto dotted = [](std::size_t major, std::size_t minor, std::size_t patch) {
        return fmt::format("{}.{}.{}", major, minor, patch);
    };
    int runtime = 0, nccl = 0;
    check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    if (ncclGetVersion(&nccl) != ncclSuccess) throw RuntimeError("ncclGetVersion failed");
    const std::size_t blas = cublasLtGetVersion(), dnn = cudnnGetVersion();
    return fmt::format("CUDA {}.{}, cuBLASLt {}, cuDNN {}, NCCL {}", runtime / 1000, runtime % 1000 / 10,
                       dotted(blas / 10000, blas / 100 % 100, blas % 100),
                       dotted(dnn / 10000, dnn / 100 % 100, dnn % 100),
                       dotted(static_cast<std::size_t>(nccl / 10000), static_cast<std::size_t>(nccl / 100 % 100),
                              static_cast<std::size_t>(nccl % 100)));
}

}  // namespace lockstep::gpu
