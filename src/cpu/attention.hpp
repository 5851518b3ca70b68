// Geometry that the forward and backward passes of attention share.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "cpu/kernel.hpp"
#include "cpu/kernels.hpp"

namespace lockstep::cpu {

/// Scores are made for a block of queries at a time; with a causal mask a block ends at its last query's key.
struct AttentionGeometry {
    static constexpr std::int64_t block_rows = 128;
    step::Attention op;
    float scale;

    explicit AttentionGeometry(const step::Attention& a)
        : op(a), scale(1.0F / std::sqrt(static_cast<float>(a.head_dim))) {}

    std::int64_t row() const { return (op.heads + 2 * op.kv_heads) * op.head_dim; }  ///< of qkv
    std::int64_t context_row() const { return op.heads * op.head_dim; }
    std::int64_t blocks() const { return (op.seq + block_rows - 1) / block_rows; }
    std::int64_t first(std::int64_t block) const { return block * block_rows; }
    std::int64_t queries(std::int64_t block) const { return std::min(block_rows, op.seq - first(block)); }
    std::int64_t keys(std::int64_t block) const { return op.causal ? first(block) + queries(block) : op.seq; }
    /// Keys that query `q` of the sequence sees.
    std::int64_t visible(std::int64_t q) const { return op.causal ? q + 1 : op.seq; }

    std::int64_t kv_head(std::int64_t head) const { return head / (op.heads / op.kv_heads); }
    std::int64_t q_at(std::int64_t b, std::int64_t head, std::int64_t q) const {
        return (b * op.seq + q) * row() + head * op.head_dim;
    }
    std::int64_t k_at(std::int64_t b, std::int64_t kv) const {
        return b * op.seq * row() + (op.heads + kv) * op.head_dim;
    }
    std::int64_t v_at(std::int64_t b, std::int64_t kv) const { return k_at(b, kv) + op.kv_heads * op.head_dim; }
    std::int64_t context_at(std::int64_t b, std::int64_t head, std::int64_t q) const {
        return (b * op.seq + q) * context_row() + head * op.head_dim;
    }
};

/// Draws of the dropout of one row of probabilities.
struct AttentionDropout {
    std::uint64_t seed = 0, stream = 0, first = 0;
    float probability = 0;
    /// 0 for a dropped key, else 1 / (1 - p).
    float factor(std::int64_t key) const {
        const bool keep = random_uniform(seed, stream, first + static_cast<std::uint64_t>(key)) >= probability;
        return keep ? 1.0F / (1.0F - probability) : 0.0F;
    }
};

/// Where a context tensor's samples are among all samples, for the counters of the draws.
struct AttentionSamples {
    std::int64_t first = 0, per_micro_batch = 0;
    AttentionSamples(const step::Attention& a, const Operand& context)
        : first(context.first_global / (a.seq * a.heads * a.head_dim)),
          per_micro_batch(context.per_micro_batch / (a.seq * a.heads * a.head_dim)) {}
    AttentionDropout draws(const step::Attention& a, std::uint64_t seed, const Moment& moment, std::int64_t b,
                           std::int64_t head, std::int64_t q) const {
        const std::int64_t sample = first + moment.micro_batch * per_micro_batch + b;
        const std::int64_t row = (sample * a.heads + head) * a.seq + q;
        return {seed, a.dropout_stream + static_cast<std::uint64_t>(moment.step),
                static_cast<std::uint64_t>(row * a.seq), static_cast<float>(a.dropout)};
    }
};

std::unique_ptr<Kernel> make_attention_forward(const step::Attention&, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_attention_backward(const step::Attention&, const Operands&, const KernelSetup&);

}  // namespace lockstep::cpu
