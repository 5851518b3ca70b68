// Attention composed of matrix products (cuBLASLt) and own kernels between them: any type, dropout by element, parts of
// a ring, kept probabilities.
#pragma once

#include <memory>

#include "gpu/attention_tiles.hpp"
#include "gpu/kernels.hpp"

namespace lockstep::gpu {

inline constexpr std::int64_t most_tile_bytes = std::int64_t{256} << 20;
/// `tile_bytes`: of workspace for scores, where a tile can be so small.
std::unique_ptr<Kernel> make_composed_attention(const step::Attention& op, MathType math, const Operands& operands,
                                                const KernelSetup& setup, std::int64_t tile_bytes = most_tile_bytes);

/// What both passes share: where queries, keys and values of each head are.
struct ComposedAttention {
    step::Attention op;
    MathType math;
    std::uint64_t seed;
    BlasLt& blas;
    AttentionPlace place;
    std::vector<step::IndexRun> queries;
    DType dtype;
    std::int64_t tile_bytes;

    ComposedAttention(const step::Attention& op, MathType math, const Operand& context, const Operand& keys,
                      const KernelSetup& setup, std::int64_t tile_bytes);
    bool is_ring() const { return op.part == step::Attention::Part::ring; }
    bool is_first_step() const { return !is_ring() || op.ring_step == 0; }
    bool is_flash() const { return op.algorithm == plan::AttentionAlgorithm::flash; }
    std::int64_t element() const { return static_cast<std::int64_t>(size_of(dtype).value); }

    /// In qkv or its gradient.
    HeadMatrices queries_in(const Operand& qkv) const;
    /// Keys in qkv, or in what travels around a ring; or their gradients.
    HeadMatrices keys_in(const Operand& keys) const;
    HeadMatrices values_in(const Operand& keys) const;
    HeadMatrices in_context(const Operand& context) const;
    /// [batch, heads, seq, keys] that is kept.
    HeadMatrices kept(void* data) const;
    /// Scores of a tile in the workspace.
    HeadMatrices tile(const AttentionTile& tile, DType type) const;

    AttentionDraws draws(const Moment& moment) const {
        return {seed, op.dropout_stream + static_cast<std::uint64_t>(moment.step), moment.micro_batch,
                static_cast<float>(op.dropout)};
    }
    std::vector<AttentionChunk> plan(std::int64_t score_bytes) const;
};

/// Parts of a kernel's workspace, one behind the other.
class WorkspacePlan {
public:
    /// Returns the offset.
    std::int64_t add(std::int64_t bytes) {
        const std::int64_t offset = bytes_;
        bytes_ += (bytes + 255) / 256 * 256;
        return offset;
    }
    std::int64_t bytes() const { return bytes_; }

private:
    std::int64_t bytes_ = 0;
};

std::unique_ptr<Kernel> make_composed_forward(const ComposedAttention& shared, const Operands& operands);
std::unique_ptr<Kernel> make_composed_backward(const ComposedAttention& shared, const Operands& operands);

}  // namespace lockstep::gpu
