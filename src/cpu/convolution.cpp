// Convolutions by oneDNN: forward, backward data, backward weights. oneDNN chooses the order of the weights; where the
// tensor is stored in another one, the kernel reorders through its scratch block.
#include "cpu/convolution.hpp"

#include <fmt/format.h>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"

namespace lockstep::cpu {

using dnnl::memory;

memory::dims weight_dims(const step::Convolution& c) {
    if (c.groups == 1) return {c.out_channels, c.in_channels, c.kernel, c.width_of_kernel()};
    return {c.groups, c.out_channels / c.groups, c.in_channels / c.groups, c.kernel, c.width_of_kernel()};
}

memory::desc stored_weight_desc(const step::Convolution& convolution, const Operand& weight,
                                const memory::desc& preferred, OneDnn& library) {
    const memory::dims dims = weight_dims(convolution);
    if (weight.order == Order::row_major) return plain_desc(weight.dtype, dims);
    if (weight.order == Order::channels_last) {
        const auto tag = dims.size() == 5 ? memory::format_tag::abdec : memory::format_tag::acdb;
        return {dims, data_type(weight.dtype), tag};
    }
    if (weight.order != Order::packed) throw LogicError("a convolution weight can't be stored in blocks of channels");
    const auto fits = static_cast<std::int64_t>(preferred.get_size()) <= weight.bytes();
    return library.packed.try_emplace(weight.tensor, fits ? preferred : plain_desc(weight.dtype, dims)).first->second;
}

namespace {

using dnnl::algorithm;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

/// Descriptions of one convolution; weights in any order.
struct Shapes {
    memory::desc x, w, bias, y;
    memory::dims strides, padding;
};

Shapes shapes_of(const step::Convolution& c, const Operand& x, const Operand& y, DType weight, const Operand* bias) {
    Shapes s;
    s.x = activation_desc(x, {c.n, c.in_channels, c.height, c.width});
    s.y = activation_desc(y, {c.n, c.out_channels, c.out_height(), c.out_width()});
    s.w = memory::desc(weight_dims(c), data_type(weight), memory::format_tag::any);
    if (bias != nullptr) s.bias = memory::desc({c.out_channels}, data_type(bias->dtype), memory::format_tag::a);
    s.strides = {c.stride, c.stride};
    s.padding = {c.padding, c.horizontal_padding()};
    return s;
}

convolution_forward::primitive_desc forward_desc(const Shapes& s, const dnnl::engine& engine) {
    return {{dnnl::prop_kind::forward_training, algorithm::convolution_direct, s.x, s.w, s.bias, s.y, s.strides,
             s.padding, s.padding},
            user_scratchpad(),
            engine};
}

Prepared make_weight_reorder(const memory& from, const memory& to, const dnnl::engine& engine, bool adding,
                             ScratchPlan& scratch) {
    dnnl::primitive_attr attributes = user_scratchpad();
    if (adding) {
        dnnl::post_ops sum;
        sum.append_sum();
        attributes.set_post_ops(sum);
    }
    const dnnl::reorder::primitive_desc description(engine, from.get_desc(), engine, to.get_desc(), attributes);
    return {description, dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, scratch};
}

/// forward and backward_data: reads x (or dy) and the weight, writes y (or dx).
class ReadingConvolution final : public Kernel {
public:
    ReadingConvolution(const step::Convolution& c, const Operands& o, const KernelSetup& setup)
        : library_(setup.library) {
        if (o.out[0].access != step::Access::overwrite)
            throw LogicError("a convolution can't add to an activation; let another op add");
        const bool is_forward = c.pass == step::Pass::forward;
        const auto& engine = library_.engine;
        const Operand& weight = o.in[1];
        const Operand* bias = is_forward && o.in.size() > 2 ? &o.in[2] : nullptr;
        const Shapes s = is_forward ? shapes_of(c, o.in[0], o.out[0], weight.dtype, bias)
                                    : shapes_of(c, o.out[0], o.in[0], weight.dtype, nullptr);
        const auto forward = forward_desc(s, engine);
        if (is_forward) {
            std::vector<std::pair<int, memory>> arguments{{DNNL_ARG_SRC, {s.x, engine, o.in[0].data}},
                                                          {DNNL_ARG_DST, {s.y, engine, o.out[0].data}}};
            if (bias != nullptr) arguments.emplace_back(DNNL_ARG_BIAS, memory(s.bias, engine, bias->data));
            finish(c, weight, forward, convolution_forward(forward), std::move(arguments));
        } else {
            const convolution_backward_data::primitive_desc backward(
                {algorithm::convolution_direct, s.x, s.w, s.y, s.strides, s.padding, s.padding}, user_scratchpad(),
                engine, forward);
            finish(
                c, weight, backward, convolution_backward_data(backward),
                {{DNNL_ARG_DIFF_DST, {s.y, engine, o.in[0].data}}, {DNNL_ARG_DIFF_SRC, {s.x, engine, o.out[0].data}}});
        }
    }
    void run(const Moment&) override {
        if (has_reorder_) reorder_.run(library_.stream);
        convolution_.run(library_.stream);
    }
    std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        reorder_.bind_scratch(scratch);
        convolution_.bind_scratch(scratch);
    }

private:
    template <class Description, class Primitive>
    void finish(const step::Convolution& c, const Operand& weight, const Description& description,
                const Primitive& primitive, std::vector<std::pair<int, memory>> arguments) {
        const memory::desc wanted = description.weights_desc();
        const memory::desc stored = stored_weight_desc(c, weight, wanted, library_);
        has_reorder_ = stored != wanted;
        const memory given(stored, library_.engine, weight.data);
        const memory used = has_reorder_ ? memory(wanted, library_.engine, DNNL_MEMORY_NONE) : given;
        arguments.emplace_back(DNNL_ARG_WEIGHTS, used);
        convolution_ = Prepared(description, primitive, std::move(arguments), scratch_);
        if (!has_reorder_) return;
        convolution_.place_in_scratch(used, scratch_.add(static_cast<std::int64_t>(wanted.get_size())));
        reorder_ = make_weight_reorder(given, used, library_.engine, false, scratch_);
    }

    OneDnn& library_;
    ScratchPlan scratch_;
    Prepared convolution_, reorder_;
    bool has_reorder_ = false;
};

/// backward_weights: reads dy and x, writes dw and the bias gradient. oneDNN can't add to a weight gradient, so an
/// accumulating one goes through scratch.
class WeightGradient final : public Kernel {
public:
    WeightGradient(const step::Convolution& c, const Operands& o, const KernelSetup& setup)
        : library_(setup.library), access_(o.out[0].access) {
        const auto& engine = library_.engine;
        const Output& dw = o.out[0];
        const Output* dbias = o.out.size() > 1 ? &o.out[1] : nullptr;
        const Shapes s = shapes_of(c, o.in[1], o.in[0], dw.dtype, dbias);
        const convolution_backward_weights::primitive_desc backward(
            {algorithm::convolution_direct, s.x, s.w, s.bias, s.y, s.strides, s.padding, s.padding}, user_scratchpad(),
            engine, forward_desc(s, engine));
        const memory::desc wanted = backward.diff_weights_desc();
        const memory::desc stored = stored_weight_desc(c, dw, wanted, library_);
        has_reorder_ = stored != wanted || can_add(access_);
        const memory target(stored, engine, dw.data);
        const memory used = has_reorder_ ? memory(wanted, engine, DNNL_MEMORY_NONE) : target;
        std::vector<std::pair<int, memory>> arguments{{DNNL_ARG_DIFF_DST, {s.y, engine, o.in[0].data}},
                                                      {DNNL_ARG_SRC, {s.x, engine, o.in[1].data}},
                                                      {DNNL_ARG_DIFF_WEIGHTS, used}};
        if (dbias != nullptr) add_bias(*dbias, s, arguments);
        convolution_ = Prepared(backward, convolution_backward_weights(backward), std::move(arguments), scratch_);
        if (bias_adds_) convolution_.place_in_scratch(bias_memory_, bias_offset_);
        if (!has_reorder_) return;
        convolution_.place_in_scratch(used, scratch_.add(static_cast<std::int64_t>(wanted.get_size())));
        replace_ = make_weight_reorder(used, target, engine, false, scratch_);
        if (can_add(access_)) add_ = make_weight_reorder(used, target, engine, true, scratch_);
    }
    void run(const Moment& moment) override {
        convolution_.run(library_.stream);
        if (has_reorder_) (adds(access_, moment) ? add_ : replace_).run(library_.stream);
        if (bias_adds_) (adds(bias_access_, moment) ? bias_add_ : bias_replace_).run(library_.stream);
    }
    std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        for (Prepared* p : {&convolution_, &replace_, &add_, &bias_replace_, &bias_add_}) p->bind_scratch(scratch);
    }

private:
    void add_bias(const Output& dbias, const Shapes& s, std::vector<std::pair<int, memory>>& arguments) {
        const auto& engine = library_.engine;
        bias_access_ = dbias.access;
        bias_adds_ = can_add(dbias.access);
        const memory target(s.bias, engine, dbias.data);
        bias_memory_ = bias_adds_ ? memory(s.bias, engine, DNNL_MEMORY_NONE) : target;
        arguments.emplace_back(DNNL_ARG_DIFF_BIAS, bias_memory_);
        if (!bias_adds_) return;
        bias_offset_ = scratch_.add(static_cast<std::int64_t>(s.bias.get_size()));
        bias_replace_ = make_weight_reorder(bias_memory_, target, engine, false, scratch_);
        bias_add_ = make_weight_reorder(bias_memory_, target, engine, true, scratch_);
    }

    OneDnn& library_;
    step::Access access_;
    ScratchPlan scratch_;
    Prepared convolution_, replace_, add_, bias_replace_, bias_add_;
    bool has_reorder_ = false;
    step::Access bias_access_ = step::Access::overwrite;
    bool bias_adds_ = false;
    memory bias_memory_;
    std::int64_t bias_offset_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_convolution(const step::Convolution& convolution, const Operands& operands,
                                         const KernelSetup& setup) {
    expect_slots(operands, 2, 1, "convolution");
    return with_onednn_errors(fmt::format("a {} convolution", to_string(operands.in[0].dtype)),
                              [&]() -> std::unique_ptr<Kernel> {
                                  if (convolution.pass == step::Pass::backward_weights)
                                      return std::make_unique<WeightGradient>(convolution, operands, setup);
                                  return std::make_unique<ReadingConvolution>(convolution, operands, setup);
                              });
}

}  // namespace lockstep::cpu
