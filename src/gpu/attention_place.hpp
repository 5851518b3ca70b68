// Which queries meet which keys, and where all of them are in the whole tensors: on host and device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/kernel.hpp"

namespace lockstep::gpu {

/// Ascending indices along a dimension that this rank has: one stretch of them, or two (zigzag).
struct Stretches {
    step::IndexRun first, second;

    __host__ __device__ std::int64_t global(std::int64_t local) const {
        return local < first.count ? first.global + local : second.global + local - first.count;
    }
    /// How many are `last` at most.
    __host__ __device__ std::int64_t up_to(std::int64_t last) const { return part(first, last) + part(second, last); }

private:
    __host__ __device__ static std::int64_t part(const step::IndexRun& run, std::int64_t last) {
        const std::int64_t n = last + 1 - run.global;
        return n < 0 ? 0 : (n > run.count ? run.count : n);
    }
};

/// A group is one sample's group of heads that share a key: index = sample x kv_heads + its group; `head`: one of it.
struct AttentionPlace {
    std::int64_t groups = 0, heads = 0, seq = 0, keys = 0, head_dim = 0;  ///< here; heads of a group, keys of each
    std::int64_t kv_heads = 0;
    Stretches queries, key_positions, samples, all_heads;  ///< of this rank in the whole
    std::int64_t whole_samples = 0, whole_heads = 0, whole_seq = 0;
    bool is_causal = false;
    float scale = 1;

    /// Keys here that local query `q` sees: the first ones.
    __host__ __device__ std::int64_t visible(std::int64_t q) const {
        return is_causal ? key_positions.up_to(queries.global(q)) : keys;
    }
    /// Row of [batch, heads, seq].
    __host__ __device__ std::int64_t saved_row(std::int64_t group, std::int64_t head, std::int64_t q) const {
        return (group * heads + head) * seq + q;
    }
    /// Index of a row of scores in the whole, times its keys: the counter of the draw for the key at position 0.
    __host__ __device__ std::uint64_t first_draw(std::int64_t micro_batch, std::int64_t group, std::int64_t head,
                                                 std::int64_t q) const {
        const std::int64_t sample = micro_batch * whole_samples + samples.global(group / kv_heads);
        const std::int64_t whole_head = all_heads.global(group % kv_heads * heads + head);
        const std::int64_t row = (sample * whole_heads + whole_head) * whole_seq + queries.global(q);
        return static_cast<std::uint64_t>(row * whole_seq);
    }
};

/// `context` says which samples, heads and queries are here; `keys` is qkv, or what travels in a ring. Throws
/// LogicError when their shapes aren't those of `op`.
AttentionPlace place_attention(const step::Attention& op, const Operand& context, const Operand& keys);

}  // namespace lockstep::gpu
