// Which queries meet which keys, and where all of them are in the whole tensors: on host and device.
#pragma once

#include <cstdint>

#include "gpu/place.cuh"

namespace lockstep::gpu {

/// A group is one sample's group of heads that share a key: index = sample x kv_heads + its group; `head`: one of it.
struct AttentionPlace {
    std::int64_t groups = 0, heads = 0, seq = 0, keys = 0, head_dim = 0;  ///< here; heads of a group, keys of each
    std::int64_t kv_heads = 0;
    DeviceRuns queries, key_positions, samples, all_heads;  ///< of this rank in the whole
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
