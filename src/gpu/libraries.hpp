// The handles of cuBLASLt and cuDNN, checks of what their calls return, and what their heuristics have been asked.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>

#include "gpu/dnn_plan.hpp"
#include "gpu/product.hpp"

namespace lockstep::gpu {

/// Throw RuntimeError "CALL failed: CODE (text) at file:line" unless the call succeeded.
void check_blas(cublasStatus_t result, const char* call, std::source_location where = std::source_location::current());
void check_dnn(cudnnStatus_t result, const char* call, std::source_location where = std::source_location::current());

/// Made when it is first asked for: a step that needs no products needs no library for them. Kernels of one thread
/// share it: what is asked once per shape is kept here, unlocked.
class BlasLt {
public:
    cublasLtHandle_t handle();
    /// Bytes a product may use: 32 MiB, from Hopper on 64 MiB, where faster algorithms split k.
    std::size_t most_workspace();
    ProductChoices& product_choices() { return product_choices_; }

private:
    struct Deleter {
        void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
    };
    std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Deleter> handle_;
    std::size_t most_workspace_ = 0;
    ProductChoices product_choices_;
};

/// As BlasLt.
class Dnn {
public:
    cudnnHandle_t handle();
    /// The handle, which from now on enqueues on `stream`.
    cudnnHandle_t on(cudaStream_t stream);
    DnnPlans& plans() { return plans_; }

private:
    struct Deleter {
        void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
    };
    std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Deleter> handle_;
    DnnPlans plans_;
};

/// "CUDA 13.0, cuBLASLt 13.1.0, cuDNN 9.19.0, NCCL 2.28.9"
std::string library_versions();

}  // namespace lockstep::gpu
