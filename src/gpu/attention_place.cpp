#include "gpu/attention_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace lockstep::gpu {
namespace {

/// `unit`: indices that make one.
DeviceRuns in_units(std::vector<step::IndexRun> runs, std::int64_t unit) {
    for (step::IndexRun& run : runs) run = {run.local / unit, run.global / unit, run.count / unit};
    return DeviceRuns(runs);
}

void expect_order(const std::vector<step::IndexRun>& runs) {
    const std::vector<std::int64_t> positions = step::global_indices(runs);
    if (!std::is_sorted(positions.begin(), positions.end()))
        throw LogicError("attention to keys that do not follow the order of the sequence");
}

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

AttentionPlace place_attention(const step::Attention& op, const Operand& context, const Operand& keys) {
    expect_shapes(op, context, keys);
    expect_order(keys.runs[0]);
    // The last dimensions are [heads, head_dim], or both as one.
    const std::int64_t unit = context.shape.rank() == 3 ? op.head_dim : 1;
    AttentionPlace p;
    p.groups = op.batch * op.kv_heads;
    p.heads = op.heads / op.kv_heads;
    p.seq = op.seq;
    p.keys = keys.shape[0];
    p.head_dim = op.head_dim;
    p.kv_heads = op.kv_heads;
    p.queries = DeviceRuns(context.runs[0]);
    p.key_positions = DeviceRuns(keys.runs[0]);
    p.samples = DeviceRuns(context.runs[1]);
    p.all_heads = in_units(context.runs[2], unit);
    p.whole_samples = context.global[1];
    p.whole_heads = context.global[2] / unit;
    p.whole_seq = context.global[0];
    p.is_causal = op.causal;
    p.scale = 1.0F / std::sqrt(static_cast<float>(op.head_dim));
    return p;
}

}  // namespace lockstep::gpu
