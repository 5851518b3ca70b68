// Attention in tiles of scores that fit a bounded workspace, and the matrix products of a tile.
#pragma once

#include <vector>

#include "gpu/attention_softmax.hpp"
#include "gpu/product.hpp"

namespace lockstep::gpu {

/// Groups that are worked on together, and their blocks of queries; none crosses from one run of positions to the next,
/// so that a block's last query sees all keys that any of it sees. Blocks that see none are left out.
struct AttentionChunk {
    std::int64_t first_group = 0, groups = 0;
    std::vector<AttentionTile> tiles;
};
/// Covers all groups and queries; a tile of `score_bytes` for each score has at most `most_bytes` where it can. Under a
/// causal mask blocks are so short that most of what nobody sees is not computed.
std::vector<AttentionChunk> plan_tiles(const AttentionPlace& place, const std::vector<step::IndexRun>& queries,
                                       std::int64_t score_bytes, std::int64_t most_bytes);

/// One matrix for each head of each group; from one row, head and group to the next it is so many elements. head 0: one
/// for all heads of a group.
struct HeadMatrices {
    std::byte* data = nullptr;  ///< null: in the workspace, aligned to 256 bytes
    DType dtype = DType::fp32;
    std::int64_t row = 0, head = 0, group = 0;

    std::int64_t element() const { return static_cast<std::int64_t>(size_of(dtype).value); }
    /// Those of a tile: groups and rows (queries) from its first ones on.
    std::byte* at(const AttentionTile& tile) const { return at(tile.first_group, tile.first_query); }
    std::byte* at(std::int64_t first_group, std::int64_t first_row) const {
        return data + (first_group * group + first_row * row) * element();
    }
};

/// A matrix product for each head of a tile: as one batch over groups or over heads, and again for each of the others.
/// Where the result has one matrix for all heads of a group, it must add: their sum to what is there.
class HeadProduct {
public:
    struct Shape {
        std::int64_t m = 0, n = 0, k = 0;
        bool is_a_transposed = false, is_b_transposed = false;
        HeadMatrices a, b, c;
        MathType math = MathType::fp32;
    };
    HeadProduct(const Shape& shape, std::int64_t groups, std::int64_t heads, BlasLt& blas);
    std::int64_t workspace_bytes() const { return product_.workspace_bytes(); }
    /// Of the tile's first group and head.
    void enqueue(const std::byte* a, const std::byte* b, std::byte* c, bool adds, std::byte* workspace,
                 cudaStream_t stream) const;

private:
    std::int64_t times_;
    std::int64_t a_step_, b_step_, c_step_;  // bytes, from one time to the next
    Product product_;
};

}  // namespace lockstep::gpu
