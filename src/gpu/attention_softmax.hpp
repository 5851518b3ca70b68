// What composed attention computes between its matrix products: a row of scores at a time, by own kernels.
#pragma once

#include "gpu/attention_place.hpp"

namespace lockstep::gpu {

/// Scores that are in memory at a time: of all heads of some groups, a block of queries against the keys they see.
/// [groups, heads, queries, row] elements, of which `keys` in each row mean something.
struct AttentionTile {
    std::int64_t first_group = 0, groups = 0, first_query = 0, queries = 0, keys = 0;
    std::int64_t row = 0;  ///< elements from one query to the next
};

/// The draws of dropout.
struct AttentionDraws {
    std::uint64_t seed = 0, stream = 0;
    std::int64_t micro_batch = 0;
    float probability = 0;
};

/// Writes probabilities after dropout, 0 beyond what a query sees, and the log-sum-exp of [batch, heads, seq]
/// (-infinity of no key). `weights` may be `scores` when both are fp32.
void softmax_rows(const AttentionPlace& place, const AttentionTile& tile, const AttentionDraws& draws, DType dtype,
                  const float* scores, void* weights, float* log_sum_exp, cudaStream_t stream);

/// The same where all is kept: probabilities and, with dropout (else null), mask and the probabilities after it, each
/// [batch, heads, seq, keys].
struct KeptProbabilities {
    void* probabilities = nullptr;
    std::uint8_t* mask = nullptr;
    void* dropped = nullptr;
};
void softmax_kept_rows(const AttentionPlace& place, const AttentionTile& tile, const AttentionDraws& draws, DType dtype,
                       const float* scores, const KeptProbabilities& kept, cudaStream_t stream);

/// Joins what a later step of a ring found, `part` [groups, heads, queries, head_dim] with the log-sum-exp
/// `part_log_sum_exp` [batch, heads, seq], with what is in `context` and `log_sum_exp`.
void merge_rows(const AttentionPlace& place, const AttentionTile& tile, DType dtype, const float* part,
                const float* part_log_sum_exp, void* context, float* log_sum_exp, cudaStream_t stream);

/// From scores (as they come from the product) and dprobabilities: the probabilities after dropout again, and dscores.
/// `dropped` may be `scores`, `dscores` may be `dprobabilities` when all are fp32.
void gradient_rows(const AttentionPlace& place, const AttentionTile& tile, const AttentionDraws& draws, DType dtype,
                   const float* scores, const float* dprobabilities, const void* dcontext, const void* context,
                   const float* log_sum_exp, void* dropped, void* dscores, cudaStream_t stream);
/// dscores where probabilities were kept. `dscores` may be `dprobabilities`.
void gradient_kept_rows(const AttentionPlace& place, const AttentionTile& tile, float dropout, DType dtype,
                        const float* dprobabilities, const void* dcontext, const void* context,
                        const KeptProbabilities& kept, void* dscores, cudaStream_t stream);

/// Where the gradients of some groups' keys are: a key's and behind it its value's.
struct KeyGradients {
    void* data = nullptr;
    std::int64_t row = 0, group = 0;  ///< elements from one position, one group to the next
};
/// Writes, or adds, sums [groups, keys, head_dim].
void store_keys(const AttentionPlace& place, std::int64_t groups, DType dtype, const float* dkeys, const float* dvalues,
                const KeyGradients& target, bool adds, cudaStream_t stream);
/// Of all groups of this rank's queries.
void clear_keys(const AttentionPlace& place, DType dtype, const KeyGradients& target, cudaStream_t stream);

}  // namespace lockstep::gpu
