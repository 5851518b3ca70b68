#include "cpu/attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "cpu/onednn.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

void expect_shapes(const step::Attention& op, const Operand& context, const Operand& keys) {
    const bool is_ring = op.part == step::Attention::Part::ring;
    const std::int64_t row = op.batch * op.kv_heads * (is_ring ? 2 : op.heads / op.kv_heads + 2) * op.head_dim;
    const bool fits = context.shape.rank() >= 3 && context.runs.size() == context.shape.rank() &&
                      context.shape[0] == op.seq && context.shape[1] == op.batch &&
                      context.elements() == op.seq * op.batch * op.heads * op.head_dim;
    const bool keys_fit = keys.shape.rank() >= 1 && !keys.runs.empty() && keys.elements() == keys.shape[0] * row;
    if (fits && keys_fit && (is_ring || keys.shape[0] == op.seq)) return;
    throw LogicError(
        fmt::format("attention of {} queries, {} samples and {} heads of {} elements can't have a context of shape {} "
                    "and keys of shape {} (the sequence comes first)",
                    op.seq, op.batch, op.heads, op.head_dim, to_string(context.shape), to_string(keys.shape)));
}

}  // namespace

AttentionGeometry::AttentionGeometry(const step::Attention& a, const Operand& context, const Operand& keys)
    : op(a), scale(1.0F / std::sqrt(static_cast<float>(a.head_dim))) {
    expect_shapes(op, context, keys);
    key_count = keys.shape[0];
    key_runs_ = keys.runs[0];
    queries_ = step::global_indices(context.runs[0]);
    samples_ = step::global_indices(context.runs[1]);
    // The last dimensions are [heads, head_dim], or both as one.
    const std::int64_t unit = context.shape.rank() == 3 ? op.head_dim : 1;
    for (const step::IndexRun& run : context.runs[2])
        for (std::int64_t h = 0; h < run.count / unit; ++h) heads_.push_back(run.global / unit + h);
    all_samples_ = context.global[1];
    all_heads_ = context.global[2] / unit;
    all_keys_ = context.global[0];
    const std::vector<std::int64_t> key_positions = step::global_indices(key_runs_);
    if (!std::is_sorted(key_positions.begin(), key_positions.end()))
        throw LogicError("attention to keys that do not follow the order of the sequence");
    for (const std::int64_t q : queries_)
        visible_.push_back(op.causal
                               ? std::upper_bound(key_positions.begin(), key_positions.end(), q) - key_positions.begin()
                               : key_count);
    make_blocks(context.runs[0]);
}

void AttentionGeometry::make_blocks(const std::vector<step::IndexRun>& query_runs) {
    for (const step::IndexRun& run : query_runs)
        for (std::int64_t first = run.local; first < run.local + run.count; first += block_rows) {
            const std::int64_t queries = std::min(block_rows, run.local + run.count - first);
            const std::int64_t keys = visible(first + queries - 1);
            if (keys > 0) blocks.push_back({first, queries, keys});
        }
}

std::uint64_t AttentionGeometry::first_draw(std::int32_t micro_batch, std::int64_t b, std::int64_t head,
                                            std::int64_t q) const {
    const std::int64_t sample = micro_batch * all_samples_ + samples_[static_cast<std::size_t>(b)];
    const std::int64_t row = (sample * all_heads_ + heads_[static_cast<std::size_t>(head)]) * all_keys_ +
                             queries_[static_cast<std::size_t>(q)];
    return static_cast<std::uint64_t>(row * all_keys_);
}

void expect_ring_access(const step::Attention& op, const Output& output) {
    if ((op.ring_step == 0) == (output.access == step::Access::overwrite)) return;
    throw LogicError(fmt::format("ring step {} of attention must {} what it writes", op.ring_step,
                                 op.ring_step == 0 ? "overwrite" : "update"));
}

std::unique_ptr<Kernel> make_attention(const step::Attention& op, const Operands& o, const KernelSetup& setup) {
    if (op.kv_heads < 1 || op.heads % op.kv_heads != 0)
        throw LogicError(fmt::format("{} heads can't share {} key-value heads", op.heads, op.kv_heads));
    if (op.part == step::Attention::Part::ring && op.algorithm != plan::AttentionAlgorithm::flash)
        throw LogicError("attention around a ring keeps no probabilities (its algorithm must be flash)");
    return with_onednn_errors(fmt::format("{} attention", to_string(o.in[0].dtype)), [&] {
        return op.pass == step::Pass::forward ? make_attention_forward(op, o, setup)
                                              : make_attention_backward(op, o, setup);
    });
}

}  // namespace lockstep::cpu
