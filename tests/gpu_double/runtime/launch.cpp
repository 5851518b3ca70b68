// Kernels: which there are, and launching one by its host twin.
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>

#include "gpu/kernel_header.hpp"
#include "gpu_double/runtime/api.hpp"
#include "gpu_double/runtime/coverage.hpp"
#include "gpu_double/runtime/memory.hpp"
#include "gpu_double/runtime/stream_queue.hpp"

namespace lockstep::gpu_double {
namespace {

struct Kernels {
    std::mutex mutex;
    std::map<const void*, std::string> registered;  ///< names by the addresses of host stubs
};
Kernels& kernels() {
    static Kernels& kernels = *new Kernels;
    return kernels;
}

bool is_kernel(const void* function) {
    const std::lock_guard lock(kernels().mutex);
    const auto found = kernels().registered.find(function);
    if (found != kernels().registered.end()) note("launch", found->second);
    return found != kernels().registered.end();
}

std::size_t count(const dim3& extent) { return std::size_t{extent.x} * extent.y * extent.z; }

constexpr std::size_t most_parameter_bytes = 4096;  // that every toolkit and device takes

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, cudaStream_t stream, bool hangs) {
    if (!is_kernel(function)) return misuse(cudaErrorInvalidDeviceFunction, "cudaLaunchKernel: no kernel");
    const auto queue = find_stream(stream, "cudaLaunchKernel");
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (queue->device() != current_device())
        return misuse(cudaErrorInvalidResourceHandle, "cudaLaunchKernel: the stream is of another device");
    if (count(grid) == 0 || grid.y > 65535 || grid.z > 65535 || count(block) == 0 || count(block) > 1024)
        return misuse(cudaErrorInvalidConfiguration, fmt::format("cudaLaunchKernel: grid {}x{}x{}, block {}x{}x{}",
                                                                 grid.x, grid.y, grid.z, block.x, block.y, block.z));
    if (!arguments || !arguments[0]) return misuse(cudaErrorInvalidValue, "cudaLaunchKernel: no parameter");
    gpu::KernelHeader header{};
    std::memcpy(&header, arguments[0], sizeof header);
    if (!header.host_twin || header.bytes < sizeof header || header.bytes > most_parameter_bytes)
        return misuse(cudaErrorInvalidValue, fmt::format("cudaLaunchKernel: a parameter of {} bytes", header.bytes));
    // Aligned for whatever the parameter holds.
    std::shared_ptr<std::max_align_t[]> copy(new std::max_align_t[header.bytes / sizeof(std::max_align_t) + 1]);
    std::memcpy(copy.get(), arguments[0], header.bytes);
    queue->push([=] { hangs ? wait_forever() : header.host_twin(copy.get()); });
    return cudaSuccess;
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t stream) {
    return api("cudaLaunchKernel", [&](bool hangs) { return launch(function, grid, block, arguments, stream, hangs); });
}

// What nvcc's stubs call.

void** __cudaRegisterFatBinary(void*) {
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* host_stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    const std::lock_guard lock(kernels().mutex);
    kernels().registered.emplace(host_stub, name);
    note("kernel", name);
}
// Launches by <<<>>>, which the executor doesn't use.
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, CUstream_st*) { return 1; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) { return cudaErrorInvalidConfiguration; }
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
    return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared, stream);
}
}
