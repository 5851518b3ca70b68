// Convolutions by cuDNN: forward, backward data, backward weights, on channels-last images and weights.
#include "gpu/convolution.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/error.hpp"
#include "gpu/convolution_passes.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

using step::Convolution;
using step::Pass;

constexpr std::size_t most_workspace = std::size_t{256} << 20;

/// What the heuristics may propose: plain fp32 products, fp32 or tf32 ones, tensor cores for elements of 16 bits.
cudnnMathType_t math_of(DType dtype, MathType math) {
    if (dtype != DType::fp32) return CUDNN_TENSOR_OP_MATH;
    return math == MathType::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

ConvolutionShape shape_of(const Convolution& c, MathType math, DType dtype) {
    return {static_cast<int>(c.pass),
            dtype,
            math_of(dtype, math),
            c.n,
            c.in_channels,
            c.height,
            c.width,
            c.out_channels,
            c.kernel,
            c.stride,
            c.padding,
            c.groups};
}

ConvolutionDescriptors descriptors_of(const Convolution& c, DType dtype, cudnnMathType_t math) {
    return {make_image(dtype, c.n, c.in_channels, c.height, c.width),
            make_image(dtype, c.n, c.out_channels, c.out_height(), c.out_width()),
            make_filter(dtype, c.out_channels, c.in_channels / c.groups, c.kernel),
            make_convolution_descriptor(c.stride, c.padding, c.groups, math)};
}

/// Looks for the first algorithm that supports the shape within the workspace, else the one that needs the least.
template <class P>
class Search {
public:
    Search(cudnnHandle_t handle, const ConvolutionDescriptors& d, cudnnMathType_t math)
        : handle_(handle), d_(d), math_(math) {
        std::array<typename P::Proposal, P::algorithms> proposals{};
        int count = 0;
        if (P::propose(handle_, d_, &count, proposals.data()) != CUDNN_STATUS_SUCCESS) count = 0;
        for (int i = 0; i < count && !fits(); ++i) {
            const auto& proposal = proposals[static_cast<std::size_t>(i)];
            // A request for plain fp32 stays one, whatever the proposal's type says.
            if (proposal.status == CUDNN_STATUS_SUCCESS)
                consider(proposal.algo, math_ == CUDNN_FMA_MATH ? math_ : proposal.mathType, proposal.determinism);
        }
        for (int i = 0; i < P::algorithms && !best_; ++i)
            consider(static_cast<typename P::Algorithm>(i), math_, CUDNN_NON_DETERMINISTIC);
    }
    const std::optional<ConvolutionChoice>& best() const { return best_; }

private:
    bool fits() const { return best_ && best_->workspace <= most_workspace; }
    void consider(typename P::Algorithm algorithm, cudnnMathType_t math, cudnnDeterminism_t determinism) {
        check_dnn(cudnnSetConvolutionMathType(d_.convolution.get(), math), "cudnnSetConvolutionMathType");
        std::size_t bytes = 0;
        if (P::workspace(handle_, d_, algorithm, &bytes) != CUDNN_STATUS_SUCCESS) return;
        if (best_ && best_->workspace <= bytes) return;
        best_ = {static_cast<int>(algorithm), math, bytes,
                 fmt::format("cuDNN {} algorithm {}, math {}, {}", P::name, static_cast<int>(algorithm),
                             static_cast<int>(math),
                             determinism == CUDNN_DETERMINISTIC ? "deterministic" : "not deterministic")};
    }

    cudnnHandle_t handle_;
    const ConvolutionDescriptors& d_;
    cudnnMathType_t math_;
    std::optional<ConvolutionChoice> best_;
};

template <class P>
ConvolutionChoice choose(const ConvolutionShape& s, const ConvolutionDescriptors& d, Dnn& dnn) {
    auto& known = dnn.convolution_choices();
    if (const auto found = known.find(s); found != known.end()) return found->second;
    const Search<P> search(dnn.handle(), d, s.math);
    if (!search.best())
        throw RuntimeError(
            fmt::format("cuDNN has no {} algorithm for this {} convolution on channels-last images ({} x "
                        "{} x {} x {}, {} channels out, kernel {}, stride {}, padding {}, {} groups); "
                        "use another precision",
                        P::name, to_string(s.dtype), s.n, s.in_channels, s.height, s.width, s.out_channels, s.kernel,
                        s.stride, s.padding, s.groups));
    return known.emplace(s, *search.best()).first->second;
}

/// The operands of a pass under the names of the forward pass.
struct Addresses {
    void *x, *w, *y;
};
Addresses addresses_of(Pass pass, const Operands& o) {
    switch (pass) {
        case Pass::forward: return {o.in[0].data, o.in[1].data, o.out[0].data};
        case Pass::backward_data: return {o.out[0].data, o.in[1].data, o.in[0].data};
        case Pass::backward_weights: break;
    }
    return {o.in[1].data, o.out[0].data, o.in[0].data};
}

template <class P>
class ConvolutionKernel final : public Kernel {
public:
    /// `bias` adds the bias to y, or sums it from dy, behind the convolution; null: there is none.
    ConvolutionKernel(const Convolution& c, MathType math, const Operands& o, Dnn& dnn, std::unique_ptr<Kernel> bias)
        : dnn_(dnn),
          access_(o.out[0].access),
          at_(addresses_of(c.pass, o)),
          descriptors_(descriptors_of(c, o.in[0].dtype, math_of(o.in[0].dtype, math))),
          choice_(choose<P>(shape_of(c, math, o.in[0].dtype), descriptors_, dnn)),
          bias_(std::move(bias)) {
        check_dnn(cudnnSetConvolutionMathType(descriptors_.convolution.get(), choice_.math),
                  "cudnnSetConvolutionMathType");
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        const ConvolutionCall call{dnn_.on(stream),
                                   descriptors_,
                                   at_.x,
                                   at_.w,
                                   at_.y,
                                   workspace_,
                                   choice_.workspace,
                                   adds(access_, moment) ? 1.0F : 0.0F};
        check_dnn(P::run(call, static_cast<typename P::Algorithm>(choice_.algorithm)), P::name);
        if (bias_) bias_->enqueue(moment, stream);
    }
    std::int64_t workspace_bytes() const override {
        const auto own = static_cast<std::int64_t>(choice_.workspace);
        return bias_ ? std::max(own, bias_->workspace_bytes()) : own;
    }
    void bind_workspace(std::byte* workspace) override {
        workspace_ = workspace;
        if (bias_) bias_->bind_workspace(workspace);
    }
    std::string algorithm() const override { return choice_.text; }

private:
    Dnn& dnn_;
    step::Access access_;
    Addresses at_;
    ConvolutionDescriptors descriptors_;
    ConvolutionChoice choice_;
    std::unique_ptr<Kernel> bias_;
    std::byte* workspace_ = nullptr;
};

/// y += bias, on rows of channels.
std::unique_ptr<Kernel> make_bias(const Convolution& c, const Operands& o) {
    if (o.in.size() < 3) return {};
    step::Elementwise add;
    add.kind = step::Elementwise::Kind::add_bias;
    add.count = o.out[0].elements();
    add.width = c.out_channels;
    Output y = o.out[0];
    y.access = step::Access::overwrite;
    return make_elementwise(add, {{y, o.in[2]}, {y}});
}

/// dbias: dy summed over its rows of channels.
std::unique_ptr<Kernel> make_bias_gradient(const Convolution& c, const Operands& o) {
    if (o.out.size() < 2) return {};
    return make_column_sum({c.n * c.out_height() * c.out_width(), c.out_channels}, {{o.in[0]}, {o.out[1]}});
}

void check(const Operand& operand, DType dtype) {
    if (operand.dtype != dtype) throw LogicError("image, weight and result of a convolution must be of one type");
    if (operand.layout == step::Layout::row_major && operand.shape.rank() == 4)
        throw LogicError("images and weights of a convolution must be channels-last on a GPU");
}

}  // namespace

std::unique_ptr<Kernel> make_convolution(const Convolution& c, MathType math, const Operands& o,
                                         const KernelSetup& setup) {
    expect_slots(o, 2, 1, "convolution");
    if (math == MathType::fp8)
        throw RuntimeError(
            "a convolution in fp8 needs scaling factors, which a step doesn't have yet; use precision "
            "bf16");
    for (const Operand* operand : {&o.in[0], &o.in[1], static_cast<const Operand*>(&o.out[0])})
        check(*operand, o.in[0].dtype);
    switch (c.pass) {
        case Pass::forward:
            return std::make_unique<ConvolutionKernel<ForwardPass>>(c, math, o, setup.dnn, make_bias(c, o));
        case Pass::backward_data:
            return std::make_unique<ConvolutionKernel<BackwardDataPass>>(c, math, o, setup.dnn, nullptr);
        case Pass::backward_weights: break;
    }
    return std::make_unique<ConvolutionKernel<BackwardWeightsPass>>(c, math, o, setup.dnn, make_bias_gradient(c, o));
}

}  // namespace lockstep::gpu
