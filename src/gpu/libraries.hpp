// The handles of cuBLASLt and cuDNN, and checks of what their calls return.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <memory>
#include <source_location>
#include <string>
#include <type_traits>

namespace lockstep::gpu {

class DnnPlans;

/// Throw RuntimeError "CALL failed: CODE (text) at file:line" unless the call succeeded.
void check_blas(cublasStatus_t result, const char* call, std::source_location where = std::source_location::current());
void check_dnn(cudnnStatus_t result, const char* call, std::source_location where = std::source_location::current());

/// Made when it is first asked for: a step that needs no products needs no library for them.
class BlasLt {
public:
    cublasLtHandle_t handle();

private:
    struct Deleter {
        void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
    };
    std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Deleter> handle_;
};

/// Made when it is first asked for.
class Dnn {
public:
    cudnnHandle_t handle();
    /// The handle, which from now on enqueues on `stream`.
    cudnnHandle_t on(cudaStream_t stream);
    DnnPlans& plans();

private:
    struct Deleter {
        void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
    };
    std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Deleter> handle_;
    std::shared_ptr<DnnPlans> plans_;
};

/// "CUDA 13.0, cuBLASLt 13.1.0, cuDNN 9.19.0, NCCL 2.28.9"
std::string library_versions();

}  // namespace lockstep::gpu
