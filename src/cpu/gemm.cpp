// Matrix products by oneDNN.
#include <fmt/format.h>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/onednn.hpp"

namespace lockstep::cpu {
namespace {

using dnnl::memory;

/// `rows` x `columns` per batch entry, stored transposed or not.
memory::desc matrix(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                    step::Gemm::Transpose transpose) {
    const bool is_transposed = transpose == step::Gemm::Transpose::yes;
    memory::dims dims{rows, columns};
    memory::dims strides = is_transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
    if (batch > 1) {
        dims.insert(dims.begin(), batch);
        strides.insert(strides.begin(), rows * columns);
    }
    return {dims, data_type(dtype), strides};
}

class GemmKernel final : public Kernel {
public:
    GemmKernel(const step::Gemm& gemm, const Operands& operands, const KernelSetup& setup)
        : library_(setup.library), access_(operands.out[0].access) {
        if (access_ != step::Access::accumulate) replace_ = prepare(gemm, operands, false);
        if (can_add(access_)) add_ = prepare(gemm, operands, true);
    }
    void run(const Moment& moment) override { (adds(access_, moment) ? add_ : replace_).run(library_.stream); }
    std::int64_t scratch_bytes() const override { return bytes_; }
    void bind_scratch(std::byte* scratch) override {
        add_.bind_scratch(scratch);
        replace_.bind_scratch(scratch);
    }

private:
    Prepared prepare(const step::Gemm& gemm, const Operands& operands, bool adding) {
        using Transpose = step::Gemm::Transpose;
        const auto& engine = library_.engine;
        const memory::desc a = matrix(operands.in[0].dtype, gemm.batch, gemm.m, gemm.k, gemm.a);
        const memory::desc b = matrix(operands.in[1].dtype, gemm.batch, gemm.k, gemm.n, gemm.b);
        const memory::desc c = matrix(operands.out[0].dtype, gemm.batch, gemm.m, gemm.n, Transpose::no);
        std::vector<std::pair<int, memory>> arguments{{DNNL_ARG_SRC, {a, engine, operands.in[0].data}},
                                                      {DNNL_ARG_WEIGHTS, {b, engine, operands.in[1].data}},
                                                      {DNNL_ARG_DST, {c, engine, operands.out[0].data}}};
        memory::desc bias;
        if (operands.in.size() > 2) {
            bias = matrix(operands.in[2].dtype, 1, 1, gemm.n, Transpose::no);
            if (gemm.batch > 1) bias = bias.reshape({1, 1, gemm.n});
            arguments.emplace_back(DNNL_ARG_BIAS, memory(bias, engine, operands.in[2].data));
        }
        dnnl::primitive_attr attributes = user_scratchpad();
        if (adding) {
            dnnl::post_ops sum;
            sum.append_sum();
            attributes.set_post_ops(sum);
        }
        const dnnl::matmul::primitive_desc description({a, b, bias, c}, attributes, engine);
        ScratchPlan scratch;
        Prepared prepared(description, dnnl::matmul(description), std::move(arguments), scratch);
        bytes_ = std::max(bytes_, scratch.bytes());
        return prepared;
    }

    OneDnn& library_;
    step::Access access_;
    Prepared replace_, add_;
    std::int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_gemm(const step::Gemm& gemm, const Operands& operands, const KernelSetup& setup) {
    expect_slots(operands, 2, 1, "gemm");
    return with_onednn_errors(fmt::format("a {} matrix product", to_string(operands.in[0].dtype)), [&] {
        return std::unique_ptr<Kernel>(std::make_unique<GemmKernel>(gemm, operands, setup));
    });
}

}  // namespace lockstep::cpu
