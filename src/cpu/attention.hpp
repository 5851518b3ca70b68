// Geometry that the forward and backward passes of attention share: which queries meet which keys, and where they are.
#pragma once

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "cpu/kernel.hpp"
#include "cpu/kernels.hpp"

namespace lockstep::cpu {

/// Scores are made for a block of queries at a time; none crosses from one run of positions to the next.
struct QueryBlock {
    std::int64_t first = 0, queries = 0;
    std::int64_t keys = 0;  ///< that its last query sees, of those here
};

/// Offsets are in elements. Keys are those of `qkv` itself, or in a ring those that travel in `kv` now.
class AttentionGeometry {
public:
    static constexpr std::int64_t block_rows = 128;

    /// `context` says which samples, heads and queries of all these are; `keys` is qkv, or kv in a ring. Throws
    /// LogicError when their shapes aren't those of `op`.
    AttentionGeometry(const step::Attention& op, const Operand& context, const Operand& keys);

    step::Attention op;
    float scale;
    std::int64_t key_count = 0;      ///< here
    std::vector<QueryBlock> blocks;  ///< those that see a key

    bool is_ring() const { return op.part == step::Attention::Part::ring; }
    bool is_first_step() const { return !is_ring() || op.ring_step == 0; }
    std::int64_t sharing() const { return op.heads / op.kv_heads; }  ///< heads of a group
    /// Keys here that local query `q` sees: the first ones.
    std::int64_t visible(std::int64_t q) const { return visible_[static_cast<std::size_t>(q)]; }

    std::int64_t row() const { return op.batch * op.kv_heads * (sharing() + 2) * op.head_dim; }  ///< of qkv
    std::int64_t key_row() const { return is_ring() ? op.batch * op.kv_heads * 2 * op.head_dim : row(); }
    std::int64_t context_row() const { return op.batch * op.heads * op.head_dim; }
    std::int64_t q_at(std::int64_t b, std::int64_t head, std::int64_t q) const {
        return q * row() + group_at(b, head / sharing()) + head % sharing() * op.head_dim;
    }
    /// The key of position 0 in qkv or in what travels; its value follows.
    std::int64_t own_k_at(std::int64_t b, std::int64_t group) const {
        return group_at(b, group) + sharing() * op.head_dim;
    }
    std::int64_t k_at(std::int64_t b, std::int64_t group) const {
        return is_ring() ? (b * op.kv_heads + group) * 2 * op.head_dim : own_k_at(b, group);
    }
    std::int64_t v_at(std::int64_t b, std::int64_t group) const { return k_at(b, group) + op.head_dim; }
    std::int64_t context_at(std::int64_t b, std::int64_t head, std::int64_t q) const {
        return q * context_row() + (b * op.heads + head) * op.head_dim;
    }
    /// Row of [batch, heads, seq].
    std::int64_t saved_row(std::int64_t b, std::int64_t head, std::int64_t q) const {
        return (b * op.heads + head) * op.seq + q;
    }

    /// Index of a row of scores, times the keys of the whole sequence: the counter of the draw for its key 0.
    std::uint64_t first_draw(std::int32_t micro_batch, std::int64_t b, std::int64_t head, std::int64_t q) const;
    /// f(key, position in the whole sequence) for the keys that query `q` sees.
    template <class F>
    void for_visible(std::int64_t q, F&& f) const {
        for (const step::IndexRun& run : key_runs_) {
            const std::int64_t end = std::min(run.local + run.count, visible(q)), shift = run.global - run.local;
            for (std::int64_t key = run.local; key < end; ++key) f(key, key + shift);
        }
    }

private:
    std::int64_t group_at(std::int64_t b, std::int64_t group) const {
        return (b * op.kv_heads + group) * (sharing() + 2) * op.head_dim;
    }
    void make_blocks(const std::vector<step::IndexRun>& query_runs);

    std::vector<step::IndexRun> key_runs_;
    std::vector<std::int64_t> visible_;                    // by local query
    std::vector<std::int64_t> samples_, heads_, queries_;  // global index of each local one
    std::int64_t all_samples_ = 0, all_heads_ = 0, all_keys_ = 0;
};

/// Draws of the dropout of probabilities.
struct AttentionDropout {
    std::uint64_t seed = 0, stream = 0;
    float probability = 0;
    AttentionDropout(const step::Attention& op, std::uint64_t seed_, std::int64_t step)
        : seed(seed_),
          stream(op.dropout_stream + static_cast<std::uint64_t>(step)),
          probability(static_cast<float>(op.dropout)) {}
    float kept() const { return 1.0F / (1.0F - probability); }  ///< factor of those that are kept
    bool keeps(std::uint64_t counter) const { return random_uniform(seed, stream, counter) >= probability; }
    /// 0 for a dropped key, else kept().
    float factor(std::uint64_t counter) const { return keeps(counter) ? kept() : 0.0F; }
};

std::unique_ptr<Kernel> make_attention_forward(const step::Attention&, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_attention_backward(const step::Attention&, const Operands&, const KernelSetup&);
/// Throws LogicError unless what a ring step writes replaces what is there in step 0 and joins it later.
void expect_ring_access(const step::Attention& op, const Output& output);

}  // namespace lockstep::cpu
