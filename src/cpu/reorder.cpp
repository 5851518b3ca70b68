// Weights between row-major and the order a convolution has chosen.
#include <fmt/format.h>

#include "cpu/convolution.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"

namespace lockstep::cpu {
namespace {

using dnnl::memory;

memory::desc stored_desc(const step::Convolution& target, const Operand& weight, OneDnn& library) {
    if (weight.order != Order::packed) return stored_weight_desc(target, weight, {}, library);
    const auto found = library.packed.find(weight.tensor);
    if (found == library.packed.end())
        throw LogicError(fmt::format("no convolution uses packed tensor {}", weight.tensor));
    return found->second;
}

class ReorderKernel final : public Kernel {
public:
    ReorderKernel(const step::Reorder& reorder, const Operands& o, const KernelSetup& setup)
        : library_(setup.library), access_(o.out[0].access) {
        const memory from(stored_desc(reorder.target, o.in[0], library_), library_.engine, o.in[0].data);
        const memory to(stored_desc(reorder.target, o.out[0], library_), library_.engine, o.out[0].data);
        replace_ = prepare(from, to, {});
        if (!can_add(access_)) return;
        dnnl::post_ops sum;
        sum.append_sum();
        add_ = prepare(from, to, sum);
    }
    void run(const Moment& moment) override { (adds(access_, moment) ? add_ : replace_).run(library_.stream); }
    std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        replace_.bind_scratch(scratch);
        add_.bind_scratch(scratch);
    }

private:
    Prepared prepare(const memory& from, const memory& to, const dnnl::post_ops& post) {
        dnnl::primitive_attr attributes = user_scratchpad();
        attributes.set_post_ops(post);
        const dnnl::reorder::primitive_desc description(library_.engine, from.get_desc(), library_.engine,
                                                        to.get_desc(), attributes);
        return {description, dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, scratch_};
    }

    OneDnn& library_;
    step::Access access_;
    ScratchPlan scratch_;
    Prepared replace_, add_;
};

}  // namespace

std::unique_ptr<Kernel> make_reorder(const step::Reorder& reorder, const Operands& operands, const KernelSetup& setup) {
    expect_slots(operands, 1, 1, "reorder");
    return with_onednn_errors("a weight reorder", [&] {
        return std::unique_ptr<Kernel>(std::make_unique<ReorderKernel>(reorder, operands, setup));
    });
}

}  // namespace lockstep::cpu
