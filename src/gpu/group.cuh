// The threads that work on one row together: those of a warp or a block on a device, one thread on a host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep::gpu {

/// A warp of a block or all of it. Every thread of the group must make the same calls.
class BlockGroup {
public:
    static constexpr int most_warps = 16;
    /// `threads`: 32, or those of the block. `shared`: most_warps floats of the block.
    __device__ BlockGroup(float* shared, int threads)
        : shared_(shared), threads_(threads), thread_(static_cast<int>(threadIdx.x) & (threads - 1)) {}
    __device__ int thread() const { return thread_; }
    __device__ int threads() const { return threads_; }
    __device__ float sum(float value) const {
        return reduce(value, 0.0F, [](float a, float b) { return a + b; });
    }
    __device__ float max(float value) const {
        return reduce(value, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
    }
    /// What the group's threads wrote before is seen by all of them after.
    __device__ void barrier() const {
        if (threads_ > 32)
            __syncthreads();
        else
            __syncwarp();
    }

private:
    template <class Combine>
    __device__ static float reduce_warp(float value, Combine combine) {
        constexpr unsigned all = 0xffffffffU;
        for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(all, value, offset));
        return value;
    }
    template <class Combine>
    __device__ float reduce(float value, float neutral, Combine combine) const {
        value = reduce_warp(value, combine);
        if (threads_ <= 32) return value;
        const int warp = thread() / 32, lane = thread() % 32;
        __syncthreads();  // the values of the reduction before have been read
        if (lane == 0) shared_[warp] = value;
        __syncthreads();
        return reduce_warp(lane < threads_ / 32 ? shared_[lane] : neutral, combine);
    }
    float* shared_;
    int threads_, thread_;
};

/// A group of one thread, on a host.
class HostGroup {
public:
    __host__ __device__ int thread() const { return 0; }
    __host__ __device__ int threads() const { return 1; }
    __host__ __device__ float sum(float value) const { return value; }
    __host__ __device__ float max(float value) const { return value; }
    __host__ __device__ void barrier() const {}
};

template <int M>
struct Width {
    static constexpr int value = M;
};

/// A row in memory: elements `first` to `first` + count - 1 of arrays whose packs begin at element `head` + a multiple
/// of N (-1: nowhere, see elements_before_packs).
struct RowSpan {
    std::int64_t first, count, head;
};

/// Shares the row out: f(Width<N>, i) for the packs of elements i to i + N - 1 counted from the row's first,
/// f(Width<1>, i) for the single ones before and behind, or for all.
template <int N, class Group, class F>
__host__ __device__ void for_packs(const Group& group, const RowSpan& row, const F& f) {
    std::int64_t before = row.count;
    if (row.head >= 0) before = ((row.head - row.first) % N + N) % N;
    if (before > row.count) before = row.count;
    const std::int64_t packs = (row.count - before) / N, singles = row.count - packs * N;
    for (std::int64_t j = group.thread(); j < singles; j += group.threads())
        f(Width<1>{}, j < before ? j : j + packs * N);
    for (std::int64_t j = group.thread(); j < packs; j += group.threads()) f(Width<N>{}, before + j * N);
}

}  // namespace lockstep::gpu
