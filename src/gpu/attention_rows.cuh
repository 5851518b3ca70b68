// Rows of a tile of scores, on host and device.
#pragma once

#include "gpu/attention_softmax.hpp"
#include "gpu/random.cuh"

namespace lockstep::gpu {

/// A row of a tile.
struct Row {
    std::int64_t group, head, query;  ///< of the rank
    std::int64_t visible, saved;      ///< keys it sees; row of [batch, heads, seq]
};
__host__ __device__ inline Row row_of(const AttentionPlace& p, const AttentionTile& t, std::int64_t row) {
    Row r;
    r.query = t.first_query + row % t.queries;
    r.head = row / t.queries % p.heads;
    r.group = t.first_group + row / (t.queries * p.heads);
    r.visible = p.visible(r.query);
    r.saved = p.saved_row(r.group, r.head, r.query);
    return r;
}
inline std::int64_t rows_of(const AttentionPlace& p, const AttentionTile& t) { return t.groups * p.heads * t.queries; }

/// Elements of [seq, groups, heads, head_dim].
__host__ __device__ inline std::int64_t context_at(const AttentionPlace& p, const Row& r) {
    return ((r.query * p.groups + r.group) * p.heads + r.head) * p.head_dim;
}

/// The draws of a row.
struct RowDraws {
    std::uint64_t first;
    float kept;  ///< factor of those that are kept
    __host__ __device__ RowDraws(const AttentionPlace& p, const AttentionDraws& d, const Row& r)
        : first(p.first_draw(d.micro_batch, r.group, r.head, r.query)), kept(1.0F / (1.0F - d.probability)) {}
    __host__ __device__ bool keeps(const AttentionPlace& p, const AttentionDraws& d, std::int64_t key) const {
        const auto counter = first + static_cast<std::uint64_t>(p.key_positions.global(key));
        return random_uniform(d.seed, d.stream, counter) >= d.probability;
    }
};

}  // namespace lockstep::gpu
