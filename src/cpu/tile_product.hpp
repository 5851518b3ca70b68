// Matrix products on tiles inside larger matrices, at addresses given when they run: the inside of attention.
#pragma once

#include "cpu/onednn.hpp"

namespace lockstep::cpu {

/// C[m, n] = op(A) op(B), or C += with `adds`; each matrix row-major with its own distance between rows.
struct TileShape {
    std::int64_t m = 0, n = 0, k = 0;
    step::Gemm::Transpose transpose_a = step::Gemm::Transpose::no, transpose_b = step::Gemm::Transpose::no;
    std::int64_t row_a = 0, row_b = 0, row_c = 0;  ///< elements from row to row as stored
    DType in = DType::fp32, out = DType::fp32;
    enum class Result { replaces, adds } result = Result::replaces;
};

class TileProduct {
public:
    TileProduct(const TileShape& shape, OneDnn& library);
    std::int64_t scratch_bytes() const { return scratch_.bytes(); }
    void bind_scratch(std::byte* scratch) { primitive_.bind_scratch(scratch); }
    void run(const void* a, const void* b, void* c, const dnnl::stream& stream);

private:
    dnnl::memory a_, b_, c_;
    ScratchPlan scratch_;
    Prepared primitive_;
};

}  // namespace lockstep::cpu
