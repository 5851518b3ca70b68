// Convolutions by cuDNN's graphs: forward, backward data, backward weights, on channels-last images and weights.
#include <fmt/format.h>

#include <optional>

#include "base/error.hpp"
#include "gpu/convolution_graph.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

using step::Access;
using step::Convolution;
using step::Pass;

constexpr std::int64_t most_workspace = std::int64_t{256} << 20;

/// The operands of a pass under the names of the forward pass.
struct Places {
    const Operand &x, &w, &y;
};
Places places_of(Pass pass, const Operands& o) {
    switch (pass) {
        case Pass::forward: return {o.in[0], o.in[1], o.out[0]};
        case Pass::backward_data: return {o.out[0], o.in[1], o.in[0]};
        case Pass::backward_weights: break;
    }
    return {o.in[1], o.out[0], o.in[0]};
}

/// Of at most 16 bytes: engines ask for no more.
std::int64_t alignment_of(const Operand& o) {
    return std::min<std::int64_t>(16, gpu::alignment_of(reinterpret_cast<std::uintptr_t>(o.data)));
}

/// A plan that overwrites its result or adds to it; equal layers share it.
DnnCall plan(const Convolution& c, MathType math, const Places& at, bool adds, Dnn& dnn) {
    const DType dtype = at.x.dtype;
    const ConvolutionAlignments alignments{alignment_of(at.x), alignment_of(at.w), alignment_of(at.y)};
    const bool is_plain = dtype == DType::fp32 && math != MathType::tf32;
    const std::string shape = fmt::format(
        "{} {} convolution of {} x {} x {} x {} (batch, channels, height, width), {} channels out, kernel {}, stride "
        "{}, padding {}, {} groups",
        to_string(dtype), name_of(c.pass), c.n, c.in_channels, c.height, c.width, c.out_channels, c.kernel, c.stride,
        c.padding, c.groups);
    const std::string what = fmt::format("{}, {} {}, aligned to {} {} {}", shape, is_plain ? "plain" : "", adds,
                                         alignments.x, alignments.w, alignments.y);
    const DnnChoice& choice = dnn.plans().get(what, [&] {
        return choose_plan(make_convolution_graph(c, dtype, alignments, adds), dnn.handle(),
                           {is_plain ? DnnRounding::none : DnnRounding::of_tensor_cores, most_workspace, true});
    });
    if (choice.plan == nullptr)
        throw RuntimeError(
            fmt::format("cuDNN has no engine for this {} ({}); use another precision", shape, choice.why_not));
    return DnnCall(choice.plan);
}

class ConvolutionKernel final : public Kernel {
public:
    /// `bias` adds the bias to y, or sums its gradient from dy, behind the convolution; null: there is none.
    ConvolutionKernel(const Convolution& c, MathType math, const Operands& o, Dnn& dnn, std::unique_ptr<Kernel> bias)
        : dnn_(dnn), access_(o.out[0].access), bias_(std::move(bias)) {
        const Places at = places_of(c.pass, o);
        addresses_ = {{convolution_x, at.x.data}, {convolution_w, at.w.data}, {convolution_y, at.y.data}};
        if (access_ != Access::accumulate) replace_ = plan(c, math, at, false, dnn);
        if (can_add(access_)) add_ = plan(c, math, at, true, dnn);
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        (adds(access_, moment) ? *add_ : *replace_).execute(dnn_.on(stream));
        if (bias_) bias_->enqueue(moment, stream);
    }
    std::int64_t workspace_bytes() const override {
        std::int64_t most = bias_ ? bias_->workspace_bytes() : 0;
        for (const auto& call : {&replace_, &add_})
            if (*call) most = std::max(most, (*call)->plan().workspace_bytes);
        return most;
    }
    void bind_workspace(std::byte* workspace) override {
        for (const auto& call : {&replace_, &add_})
            if (*call) (*call)->bind(addresses_, workspace);
        if (bias_) bias_->bind_workspace(workspace);
    }
    std::string algorithm() const override { return (replace_ ? *replace_ : *add_).plan().text; }

private:
    Dnn& dnn_;
    Access access_;
    std::vector<DnnCall::Address> addresses_;
    std::optional<DnnCall> replace_, add_;
    std::unique_ptr<Kernel> bias_;
};

/// y += bias, on rows of channels.
std::unique_ptr<Kernel> make_bias(const Convolution& c, const Operands& o) {
    if (o.in.size() < 3) return {};
    step::Elementwise add;
    add.kind = step::Elementwise::Kind::add_bias;
    add.count = o.out[0].elements();
    add.width = c.out_channels;
    Output y = o.out[0];
    y.access = Access::overwrite;
    return make_elementwise(add, {{y, o.in[2]}, {y}});
}

/// dbias: dy summed over its rows of channels.
std::unique_ptr<Kernel> make_bias_gradient(const Convolution& c, const Operands& o) {
    if (o.out.size() < 2) return {};
    return make_column_sum({c.n * c.out_height() * c.out_width(), c.out_channels}, {{o.in[0]}, {o.out[1]}});
}

void check(const Convolution& c, MathType math, const Operands& o) {
    expect_slots(o, 2, 1, "convolution");
    if (math == MathType::fp8)
        throw RuntimeError(
            "a convolution in fp8 needs scaling factors, which a step doesn't have yet; use precision bf16");
    for (const Operand* operand : {&o.in[0], &o.in[1], static_cast<const Operand*>(&o.out[0])}) {
        if (operand->dtype != o.in[0].dtype)
            throw LogicError("image, weight and result of a convolution must be of one type");
        if (operand->layout == step::Layout::row_major && operand->shape.rank() == 4)
            throw LogicError("images and weights of a convolution must be channels-last on a GPU");
    }
    if (c.in_channels % c.groups != 0 || c.out_channels % c.groups != 0)
        throw LogicError("the groups of a convolution don't divide its channels");
}

}  // namespace

std::unique_ptr<Kernel> make_convolution(const Convolution& c, MathType math, const Operands& o,
                                         const KernelSetup& setup) {
    check(c, math, o);
    std::unique_ptr<Kernel> bias;
    if (c.pass == Pass::forward) bias = make_bias(c, o);
    if (c.pass == Pass::backward_weights) bias = make_bias_gradient(c, o);
    return std::make_unique<ConvolutionKernel>(c, math, o, setup.dnn, std::move(bias));
}

}  // namespace lockstep::gpu
