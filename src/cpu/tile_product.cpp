#include "cpu/tile_product.hpp"

namespace lockstep::cpu {
namespace {

using dnnl::memory;

memory::desc tile(std::int64_t rows, std::int64_t columns, step::Gemm::Transpose transpose, std::int64_t row,
                  DType dtype) {
    const bool is_transposed = transpose == step::Gemm::Transpose::yes;
    return {{rows, columns}, data_type(dtype), is_transposed ? memory::dims{1, row} : memory::dims{row, 1}};
}

}  // namespace

TileProduct::TileProduct(const TileShape& s, OneDnn& library)
    : a_(tile(s.m, s.k, s.transpose_a, s.row_a, s.in), library.engine, DNNL_MEMORY_NONE),
      b_(tile(s.k, s.n, s.transpose_b, s.row_b, s.in), library.engine, DNNL_MEMORY_NONE),
      c_(tile(s.m, s.n, step::Gemm::Transpose::no, s.row_c, s.out), library.engine, DNNL_MEMORY_NONE) {
    dnnl::primitive_attr attributes = user_scratchpad();
    if (s.result == TileShape::Result::adds) {
        dnnl::post_ops sum;
        sum.append_sum();
        attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc description({a_.get_desc(), b_.get_desc(), c_.get_desc()}, attributes,
                                                   library.engine);
    primitive_ = Prepared(description, dnnl::matmul(description),
                          {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}}, scratch_);
}

void TileProduct::run(const void* a, const void* b, void* c, const dnnl::stream& stream) {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    c_.set_data_handle(c);
    primitive_.run(stream);
}

}  // namespace lockstep::cpu
