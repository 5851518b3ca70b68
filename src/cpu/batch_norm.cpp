// Batch norm by oneDNN, which keeps variances where the graph keeps inverse deviations: small fp32 copies in between.
#include <cmath>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/onednn.hpp"

namespace lockstep::cpu {
namespace {

using dnnl::memory;
using Flags = dnnl::normalization_flags;
constexpr float momentum = 0.1F;  // PyTorch's: running = 0.9 running + 0.1 batch

memory::desc input_desc(const step::Norm& norm, const Operand& x) {
    return activation_desc(x, {norm.rows, norm.features, norm.spatial, 1});
}

dnnl::batch_normalization_forward::primitive_desc forward_desc(const step::Norm& norm, const memory::desc& x,
                                                               Flags flags, const dnnl::engine& engine) {
    return {{dnnl::prop_kind::forward_training, x, static_cast<float>(norm.epsilon), flags}, user_scratchpad(), engine};
}

Flags flags_of(bool has_shift) { return has_shift ? Flags::use_scale | Flags::use_shift : Flags::use_scale; }

void to_floats(const Operand& from, float* to, std::int64_t n) {
    with_type(from.dtype, [&](auto type) {
        const auto* values = pointer<decltype(type)>(from);
        for (std::int64_t i = 0; i < n; ++i) to[i] = load(values[i]);
    });
}

void from_floats(const float* from, const Output& to, std::int64_t n, const Moment& moment) {
    with_type(to.dtype, [&](auto type) {
        auto* values = pointer<decltype(type)>(to);
        with_access(to.access, moment, [&](auto add) {
            for (std::int64_t i = 0; i < n; ++i) write<decltype(type), add.value>(values[i], from[i]);
        });
    });
}

class BatchNormForward final : public Kernel {
public:
    BatchNormForward(const step::Norm& norm, const Operands& o, const KernelSetup& setup)
        : library_(setup.library), norm_(norm), operands_(o), has_shift_(o.in.size() > 2), small_(norm.features * 3) {
        const auto& engine = library_.engine;
        const memory::desc x = input_desc(norm, o.in[0]);
        const auto description = forward_desc(norm, x, flags_of(has_shift_), engine);
        const memory::desc row({norm.features}, memory::data_type::f32, memory::format_tag::a);
        std::vector<std::pair<int, memory>> arguments{
            {DNNL_ARG_SRC, {x, engine, o.in[0].data}},
            {DNNL_ARG_DST, {x, engine, o.out[0].data}},
            {DNNL_ARG_MEAN, {description.mean_desc(), engine, floats(o.out[1])}},
            {DNNL_ARG_VARIANCE, {description.variance_desc(), engine, variance()}},
            {DNNL_ARG_SCALE, {row, engine, scale()}}};
        if (has_shift_) arguments.emplace_back(DNNL_ARG_SHIFT, memory(row, engine, shift()));
        primitive_ =
            Prepared(description, dnnl::batch_normalization_forward(description), std::move(arguments), scratch_);
    }
    void run(const Moment&) override {
        to_floats(operands_.in[1], scale(), norm_.features);
        if (has_shift_) to_floats(operands_.in[2], shift(), norm_.features);
        primitive_.run(library_.stream);
        float* inverse = floats(operands_.out[2]);
        for (std::int64_t c = 0; c < norm_.features; ++c)
            inverse[c] = 1.0F / std::sqrt(variance()[c] + static_cast<float>(norm_.epsilon));
        if (operands_.out.size() > 4) update_running();
    }
    std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
    void bind_scratch(std::byte* scratch) override { primitive_.bind_scratch(scratch); }

private:
    float* scale() { return small_.data(); }
    float* shift() { return small_.data() + norm_.features; }
    float* variance() { return small_.data() + 2 * norm_.features; }
    void update_running() {
        const float* mean = floats(operands_.out[1]);
        float* running_mean = floats(operands_.out[3]);
        float* running_variance = floats(operands_.out[4]);
        const auto n = static_cast<float>(norm_.rows * norm_.spatial);
        const float unbiased = n > 1 ? n / (n - 1) : 1.0F;
        for (std::int64_t c = 0; c < norm_.features; ++c) {
            running_mean[c] += momentum * (mean[c] - running_mean[c]);
            running_variance[c] += momentum * (variance()[c] * unbiased - running_variance[c]);
        }
    }

    OneDnn& library_;
    step::Norm norm_;
    Operands operands_;
    bool has_shift_;
    std::vector<float> small_;
    ScratchPlan scratch_;
    Prepared primitive_;
};

class BatchNormBackward final : public Kernel {
public:
    BatchNormBackward(const step::Norm& norm, const Operands& o, const KernelSetup& setup)
        : library_(setup.library), norm_(norm), operands_(o), has_shift_(o.out.size() > 2), small_(norm.features * 5) {
        const auto& engine = library_.engine;
        const memory::desc x = input_desc(norm, o.in[1]), dy = input_desc(norm, o.in[0]);
        if (o.out[0].access != step::Access::overwrite)
            throw LogicError("batch norm can't add to an activation gradient");
        const Flags flags = flags_of(has_shift_);
        const dnnl::batch_normalization_backward::primitive_desc description(
            {dnnl::prop_kind::backward, dy, x, static_cast<float>(norm.epsilon), flags}, user_scratchpad(), engine,
            forward_desc(norm, x, flags, engine));
        const memory::desc row({norm.features}, memory::data_type::f32, memory::format_tag::a);
        std::vector<std::pair<int, memory>> arguments{
            {DNNL_ARG_SRC, {x, engine, o.in[1].data}},
            {DNNL_ARG_DIFF_DST, {dy, engine, o.in[0].data}},
            {DNNL_ARG_MEAN, {description.mean_desc(), engine, floats(o.in[3])}},
            {DNNL_ARG_VARIANCE, {description.variance_desc(), engine, part(0)}},
            {DNNL_ARG_SCALE, {row, engine, part(1)}},
            {DNNL_ARG_DIFF_SRC, {input_desc(norm, o.out[0]), engine, o.out[0].data}},
            {DNNL_ARG_DIFF_SCALE, {row, engine, part(2)}}};
        if (has_shift_) {
            arguments.emplace_back(DNNL_ARG_DIFF_SHIFT, memory(row, engine, part(3)));
            arguments.emplace_back(DNNL_ARG_SHIFT, memory(row, engine, part(4)));  // counted, though not read
        }
        primitive_ =
            Prepared(description, dnnl::batch_normalization_backward(description), std::move(arguments), scratch_);
    }
    void run(const Moment& moment) override {
        const float* inverse = floats(operands_.in[4]);
        for (std::int64_t c = 0; c < norm_.features; ++c) {
            const float variance = 1.0F / (inverse[c] * inverse[c]) - static_cast<float>(norm_.epsilon);
            part(0)[c] = variance > 0 ? variance : 0.0F;
        }
        to_floats(operands_.in[2], part(1), norm_.features);
        primitive_.run(library_.stream);
        from_floats(part(2), operands_.out[1], norm_.features, moment);
        if (has_shift_) from_floats(part(3), operands_.out[2], norm_.features, moment);
    }
    std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
    void bind_scratch(std::byte* scratch) override { primitive_.bind_scratch(scratch); }

private:
    float* part(std::int64_t i) { return small_.data() + i * norm_.features; }

    OneDnn& library_;
    step::Norm norm_;
    Operands operands_;
    bool has_shift_;
    std::vector<float> small_;  // variance, scale, gradients of scale and shift, zeros
    ScratchPlan scratch_;
    Prepared primitive_;
};

}  // namespace

std::unique_ptr<Kernel> make_batch_norm(const step::Norm& norm, const Operands& operands, const KernelSetup& setup) {
    return with_onednn_errors("batch norm", [&]() -> std::unique_ptr<Kernel> {
        if (norm.pass == step::Pass::forward) {
            expect_slots(operands, 2, 3, "batch norm");
            return std::make_unique<BatchNormForward>(norm, operands, setup);
        }
        expect_slots(operands, 5, 2, "batch norm backward");
        return std::make_unique<BatchNormBackward>(norm, operands, setup);
    });
}

}  // namespace lockstep::cpu
