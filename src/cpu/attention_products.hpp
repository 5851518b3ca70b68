// The five matrix products of the backward pass of attention for one block of queries.
#pragma once

#include <array>

#include "cpu/attention.hpp"
#include "cpu/tile_product.hpp"

namespace lockstep::cpu {

/// `scores` and `dprobabilities` give fp32 tiles whose rows are key_count apart; `dvalue` and `dkey` add to fp32
/// [keys, head_dim]; `dquery` replaces, or adds in later steps of a ring.
struct AttentionProducts {
    TileProduct scores, dprobabilities, dquery, dvalue, dkey;

    AttentionProducts(const AttentionGeometry& g, const QueryBlock& block, DType dtype, OneDnn& library)
        : scores(against_keys(g, block, dtype, g.row()), library),
          dprobabilities(against_keys(g, block, dtype, g.context_row()), library),
          dquery(to_queries(g, block, dtype), library),
          dvalue(to_keys(g, block, dtype, g.context_row()), library),
          dkey(to_keys(g, block, dtype, g.row()), library) {}
    std::array<TileProduct*, 5> all() { return {&scores, &dprobabilities, &dquery, &dvalue, &dkey}; }

private:
    using Transpose = step::Gemm::Transpose;
    /// [queries, d] [keys, d]^T -> fp32 [queries, keys]
    static TileShape against_keys(const AttentionGeometry& g, const QueryBlock& block, DType dtype,
                                  std::int64_t row_a) {
        TileShape s{block.queries, block.keys, g.op.head_dim};
        s.transpose_b = Transpose::yes;
        s.row_a = row_a;
        s.row_b = g.key_row();
        s.row_c = g.key_count;
        s.in = dtype;
        return s;
    }
    /// [queries, keys] [keys, d] -> dq
    static TileShape to_queries(const AttentionGeometry& g, const QueryBlock& block, DType dtype) {
        TileShape s{block.queries, g.op.head_dim, block.keys};
        s.row_a = g.key_count;
        s.row_b = g.key_row();
        s.row_c = g.row();
        s.in = s.out = dtype;
        if (!g.is_first_step()) s.result = TileShape::Result::adds;
        return s;
    }
    /// [queries, keys]^T [queries, d], added to fp32 [keys, d]
    static TileShape to_keys(const AttentionGeometry& g, const QueryBlock& block, DType dtype, std::int64_t row_b) {
        TileShape s{block.keys, g.op.head_dim, block.queries};
        s.transpose_a = Transpose::yes;
        s.row_a = g.key_count;
        s.row_b = row_b;
        s.row_c = g.op.head_dim;
        s.in = dtype;
        s.result = TileShape::Result::adds;
        return s;
    }
};

}  // namespace lockstep::cpu
