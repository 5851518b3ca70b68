// What the parameter of every own kernel begins with: a function that runs the same body on the host, and the
// parameter's size. Nothing on a GPU uses it; a test double of the CUDA runtime, which has no GPU, calls the function
// instead of the kernel.
#pragma once

#include <cstdint>

namespace lockstep::gpu {

struct KernelHeader {
    void (*host_twin)(const void* parameter);  ///< runs the kernel's body on the host
    std::uint64_t bytes;                       ///< of the parameter, this header included
};

}  // namespace lockstep::gpu
