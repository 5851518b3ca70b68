// The one symbol of the module.
#include "gpu/gpu_backend.hpp"

extern "C" lockstep::gpu::Backend* lockstep_gpu_backend() {
    static lockstep::gpu::GpuBackend backend;
    return &backend;
}
