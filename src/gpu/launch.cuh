// Launches own kernels whose bodies run on the device by its threads, and just as well on a host by one thread.
//
// Every own kernel takes one parameter, which begins with a KernelHeader.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "gpu/cuda_check.hpp"
#include "gpu/group.cuh"
#include "gpu/kernel_header.hpp"

namespace lockstep::gpu {

/// Enqueues `kernel`, whose one parameter is `job`.
template <class Job>
void launch(void (*kernel)(Job), Job& job, std::int64_t blocks, int threads, cudaStream_t stream) {
    static_assert(std::is_trivially_copyable_v<Job> && sizeof(Job) <= 4096, "the parameter of a kernel is copied");
    constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
    void* arguments[] = {&job};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                                dim3(static_cast<unsigned>(std::min(blocks, most_blocks))),
                                dim3(static_cast<unsigned>(threads)), arguments, 0, stream),
               "cudaLaunchKernel");
}

// ---- elements: body(i) for 0 <= i < count, in any order; none may depend on another's result

inline constexpr int element_threads = 256;  ///< of a block

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
__global__ void __launch_bounds__(element_threads) run_elements(ElementsJob<Body> job) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < job.count; i += stride)
        job.body(i);
}

template <class Body>
void launch_elements(std::int64_t count, const Body& body, cudaStream_t stream) {
    if (count <= 0) return;
    ElementsJob<Body> job{{&ElementsJob<Body>::on_host, sizeof(ElementsJob<Body>)}, count, body};
    launch(&run_elements<Body>, job, (count + element_threads - 1) / element_threads, element_threads, stream);
}

// ---- packs: as elements, N consecutive ones at once where they begin at element `head` + a multiple of N; those
// before and behind, or all of them when `head` is -1 (elements_before_packs), one by one. A body is two templates:
// compute<M>(first) returns what belongs to the elements first to first + M - 1, store<M>(first, what) writes it.

template <int N, class Body>
struct PacksJob {
    KernelHeader header;
    std::int64_t count, head, packs;
    Body body;

    /// A thread has one pack, or some single elements, of which it reads all before it writes any: so many are under
    /// way.
    static constexpr int together = N < 4 ? N : 4;
    __host__ __device__ std::int64_t singles() const { return count - packs * N; }
    __host__ __device__ std::int64_t single_threads() const { return (singles() + together - 1) / together; }
    __host__ __device__ std::int64_t threads() const { return packs + single_threads(); }
    __host__ __device__ std::int64_t element(std::int64_t single) const {
        return single < head ? single : single + packs * N;
    }
    __host__ __device__ void run(std::int64_t thread) const {
        if (thread < packs) {
            const std::int64_t first = head + thread * N;
            body.template store<N>(first, body.template compute<N>(first));
            return;
        }
        decltype(std::declval<const Body&>().template compute<1>(0)) values[together] = {};
        const std::int64_t from = thread - packs, stride = single_threads(), n = singles();
        for (int k = 0; k < together; ++k)
            if (from + k * stride < n) values[k] = body.template compute<1>(element(from + k * stride));
        for (int k = 0; k < together; ++k)
            if (from + k * stride < n) body.template store<1>(element(from + k * stride), values[k]);
    }
    static void on_host(const void* parameter) {
        const auto& job = *static_cast<const PacksJob*>(parameter);
        for (std::int64_t i = 0; i < job.threads(); ++i) job.run(i);
    }
};

template <int N, class Body>
__global__ void __launch_bounds__(element_threads) run_packs(PacksJob<N, Body> job) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x, threads = job.threads();
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < threads; i += stride)
        job.run(i);
}

template <int N, class Body>
void launch_packs(std::int64_t count, std::int64_t head, const Body& body, cudaStream_t stream) {
    if (count <= 0) return;
    const bool has_packs = head >= 0 && head < count;
    PacksJob<N, Body> job{{&PacksJob<N, Body>::on_host, sizeof(PacksJob<N, Body>)},
                          count,
                          has_packs ? head : 0,
                          has_packs ? (count - head) / N : 0,
                          body};
    launch(&run_packs<N, Body>, job, (job.threads() + element_threads - 1) / element_threads, element_threads, stream);
}

// ---- rows: body(row, group) for 0 <= row < rows, where the threads of a group work on one row together. A body is a
// template: template <class Group> __host__ __device__ void operator()(std::int64_t row, const Group& group) const.

inline constexpr int warp_threads = 32, most_row_threads = 512;

template <class Body>
struct RowsJob {
    KernelHeader header;
    std::int64_t rows;
    int group_threads;  ///< a warp or all of a block
    Body body;
    static void on_host(const void* parameter) {
        const auto& job = *static_cast<const RowsJob*>(parameter);
        for (std::int64_t row = 0; row < job.rows; ++row) job.body(row, HostGroup{});
    }
};

template <class Body>
__global__ void __launch_bounds__(most_row_threads) run_rows(RowsJob<Body> job) {
    __shared__ float shared[BlockGroup::most_warps];
    const BlockGroup group(shared, job.group_threads);
    const auto groups = static_cast<std::int64_t>(blockDim.x) / job.group_threads;
    for (std::int64_t row = blockIdx.x * groups + threadIdx.x / job.group_threads; row < job.rows;
         row += gridDim.x * groups)
        job.body(row, group);
}

/// `width`: packs (or elements) of a row, which sets how many threads share it: a warp when they are few.
template <class Body>
void launch_rows(std::int64_t rows, std::int64_t width, const Body& body, cudaStream_t stream) {
    if (rows <= 0) return;
    int threads = warp_threads;
    while (threads < most_row_threads && std::int64_t{4} * threads < width) threads *= 2;
    const int rows_of_block = threads == warp_threads ? 8 : 1;
    RowsJob<Body> job{{&RowsJob<Body>::on_host, sizeof(RowsJob<Body>)}, rows, threads, body};
    launch(&run_rows<Body>, job, (rows + rows_of_block - 1) / rows_of_block, threads * rows_of_block, stream);
}

}  // namespace lockstep::gpu
