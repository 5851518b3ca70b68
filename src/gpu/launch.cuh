// Launches own kernels whose bodies run on the device by its threads, and just as well on a host by one thread.
//
// Every own kernel takes one parameter, which begins with a KernelHeader.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gpu/cuda_check.hpp"
#include "gpu/kernel_header.hpp"

namespace lockstep::gpu {

// ---- elements: body(i) for 0 <= i < count

template <class Body>
struct ElementsJob {
    KernelHeader header;
    std::int64_t count;
    Body body;
    static void on_host(const void* parameter) {
        const auto& job = *static_cast<const ElementsJob*>(parameter);
        for (std::int64_t i = 0; i < job.count; ++i) job.body(i);
    }
};

template <class Body>
__global__ void run_elements(ElementsJob<Body> job) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < job.count; i += stride)
        job.body(i);
}

/// body(i) must not depend on other elements' results.
template <class Body>
void launch_elements(std::int64_t count, const Body& body, cudaStream_t stream) {
    if (count <= 0) return;
    constexpr std::int64_t threads = 256, most_blocks = 1 << 16;
    ElementsJob<Body> job{{&ElementsJob<Body>::on_host, sizeof(ElementsJob<Body>)}, count, body};
    void* arguments[] = {&job};
    const auto blocks = static_cast<unsigned>(std::min((count + threads - 1) / threads, most_blocks));
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(&run_elements<Body>), dim3(blocks),
                                dim3(static_cast<unsigned>(threads)), arguments, 0, stream),
               "cudaLaunchKernel");
}

// ---- rows: body(row, group), where the threads of a group work on one row together

/// The threads of a block. Every thread of it must make the same calls.
class BlockGroup {
public:
    static constexpr int most_warps = 32;
    __device__ explicit BlockGroup(float* shared) : shared_(shared) {}
    __device__ int thread() const { return static_cast<int>(threadIdx.x); }
    __device__ int threads() const { return static_cast<int>(blockDim.x); }
    __device__ float sum(float value) const {
        return reduce(value, 0.0F, [](float a, float b) { return a + b; });
    }
    __device__ float max(float value) const {
        return reduce(value, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
    }
    __device__ void barrier() const { __syncthreads(); }

private:
    template <class Combine>
    __device__ float reduce(float value, float neutral, Combine combine) const {
        constexpr unsigned all = 0xffffffffU;
        for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(all, value, offset));
        const int warp = thread() / 32, lane = thread() % 32, warps = (threads() + 31) / 32;
        __syncthreads();  // the values of the reduction before have been read
        if (lane == 0) shared_[warp] = value;
        __syncthreads();
        value = lane < warps ? shared_[lane] : neutral;
        for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(all, value, offset));
        return value;
    }
    float* shared_;
};

/// A group of one thread, on a host.
class HostGroup {
public:
    int thread() const { return 0; }
    int threads() const { return 1; }
    float sum(float value) const { return value; }
    float max(float value) const { return value; }
    void barrier() const {}
};

template <class Body>
struct RowsJob {
    KernelHeader header;
    std::int64_t rows;
    Body body;
    static void on_host(const void* parameter) {
        const auto& job = *static_cast<const RowsJob*>(parameter);
        for (std::int64_t row = 0; row < job.rows; ++row) job.body(row, HostGroup{});
    }
};

template <class Body>
__global__ void run_rows(RowsJob<Body> job) {
    __shared__ float shared[BlockGroup::most_warps];
    const BlockGroup group(shared);
    for (std::int64_t row = blockIdx.x; row < job.rows; row += gridDim.x) job.body(row, group);
}

/// body is a template over its group: template <class Group> __host__ __device__ void operator()(row, group) const.
/// `width`: elements of a row, which sets how many threads share it.
template <class Body>
void launch_rows(std::int64_t rows, std::int64_t width, const Body& body, cudaStream_t stream) {
    if (rows <= 0) return;
    constexpr std::int64_t most_blocks = 1 << 16;
    unsigned threads = 32;
    while (threads < 1024 && static_cast<std::int64_t>(threads) * 4 < width) threads *= 2;
    RowsJob<Body> job{{&RowsJob<Body>::on_host, sizeof(RowsJob<Body>)}, rows, body};
    void* arguments[] = {&job};
    check_cuda(
        cudaLaunchKernel(reinterpret_cast<const void*>(&run_rows<Body>),
                         dim3(static_cast<unsigned>(std::min(rows, most_blocks))), dim3(threads), arguments, 0, stream),
        "cudaLaunchKernel");
}

}  // namespace lockstep::gpu
