// Convolutions of cuDNN's interface: which algorithms there are, what they need, and running them.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "gpu_double/dnn/convolution.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {
namespace {

using Pass = ConvolutionPass;

/// Empty, and a misuse reported, when a descriptor is none, not set, or doesn't fit the others.
std::optional<ConvolutionProblem> find_problem(const char* function, cudnnTensorDescriptor_t x,
                                               cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution,
                                               cudnnTensorDescriptor_t y) {
    const auto image = dnn().images.find(x), result = dnn().images.find(y);
    const auto weight = dnn().filters.find(w);
    const auto settings = dnn().convolutions.find(convolution);
    if (!image || !weight || !settings || !result) {
        dnn_misuse(fmt::format("{}: a descriptor is none (destroyed?)", function));
        return std::nullopt;
    }
    const ConvolutionProblem p{*image, *result, *weight, *settings};
    const ConvolutionSettings& s = p.settings;
    if (p.x.n == 0 || p.y.n == 0 || p.w.k == 0 || s.stride_h == 0) {
        dnn_misuse(fmt::format("{}: a descriptor has not been set", function));
        return std::nullopt;
    }
    const bool fits = p.x.c == p.w.c * s.groups && p.y.c == p.w.k && p.w.k % s.groups == 0 && p.x.n == p.y.n &&
                      p.y.h == (p.x.h + 2 * s.pad_h - p.w.h) / s.stride_h + 1 &&
                      p.y.w == (p.x.w + 2 * s.pad_w - p.w.w) / s.stride_w + 1 && p.x.type == p.w.type &&
                      p.x.type == p.y.type;
    if (!fits) {
        dnn_misuse(fmt::format("{}: image, weight and result don't fit each other", function));
        return std::nullopt;
    }
    return p;
}

/// Channels last and accumulated in fp32: what the double has.
bool is_supported(const ConvolutionProblem& p) {
    return element_of(p.x.type) && p.x.format == CUDNN_TENSOR_NHWC && p.w.format == CUDNN_TENSOR_NHWC &&
           p.y.format == CUDNN_TENSOR_NHWC && p.settings.compute == CUDNN_DATA_FLOAT;
}

/// Bytes that an algorithm of a pass needs; empty: not supported. One needs more than anybody will give.
std::optional<std::size_t> workspace_of(const ConvolutionProblem& p, Pass pass, int algorithm) {
    const int fft = pass == Pass::forward         ? int{CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING}
                    : pass == Pass::backward_data ? int{CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING}
                                                  : int{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING};
    if (!is_supported(p)) return std::nullopt;
    if (algorithm == fft) return std::size_t{1} << 30;
    if (algorithm == 1) return static_cast<std::size_t>(p.w.elements()) * sizeof(float) + 256;
    if (algorithm == 0) return 0;
    return std::nullopt;
}

/// As the library orders them: the quickest first, whatever it needs. The first is one that doesn't support the shape.
template <class Proposal>
cudnnStatus_t propose(const char* function, const std::optional<ConvolutionProblem>& p, Pass pass, int wanted,
                      int* returned, Proposal* results) {
    if (!p) return CUDNN_STATUS_BAD_PARAM;
    if (wanted < 1) return dnn_misuse(fmt::format("{}: no results wanted", function));
    const int fft = pass == Pass::forward ? 5 : pass == Pass::backward_data ? 3 : 6;
    *returned = 0;
    for (const int algorithm : {2, fft, 1, 0}) {
        if (*returned == wanted) break;
        const auto bytes = workspace_of(*p, pass, algorithm);
        Proposal& one = results[(*returned)++];
        one = {};
        one.algo = static_cast<decltype(one.algo)>(algorithm);
        one.status = bytes ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
        one.time = -1;
        one.memory = bytes.value_or(0);
        one.determinism = algorithm == 0 && pass != Pass::forward ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
        one.mathType = p->settings.math;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t tell_workspace(const std::optional<ConvolutionProblem>& p, Pass pass, int algorithm, std::size_t* bytes) {
    if (!p) return CUDNN_STATUS_BAD_PARAM;
    const auto needed = workspace_of(*p, pass, algorithm);
    if (!needed) return dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "the double has no such algorithm for this convolution");
    *bytes = *needed;
    return CUDNN_STATUS_SUCCESS;
}

struct Call {
    const char* function;
    ConvolutionProblem problem;
    Pass pass;
    float alpha, beta;
    const void *x, *w, *y;
    void* workspace;
    std::size_t workspace_bytes;

    /// What the pass writes.
    void* result() const { return const_cast<void*>(pass == Pass::forward ? y : pass == Pass::backward_data ? x : w); }
};

bool are_operands_good(const Call& c) {
    const auto expect = [&](const void* data, std::int64_t elements, const char* name) {
        const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(*element_of(c.problem.x.type));
        return expect_device_range(data, bytes, fmt::format("{}: {}", c.function, name).c_str());
    };
    return expect(c.x, c.problem.x.elements(), "the image") && expect(c.w, c.problem.w.elements(), "the weight") &&
           expect(c.y, c.problem.y.elements(), "the result") &&
           (c.workspace_bytes == 0 ||
            expect_device_range(c.workspace, c.workspace_bytes, fmt::format("{}: the workspace", c.function).c_str()));
}

/// As tensor cores read fp32: 10 bits behind the point, rounded to nearest.
void round_to_tf32(std::vector<float>& values) {
    for (float& value : values)
        value = std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & ~std::uint32_t{0x1fff});
}

void run(const Call& c) {
    const ConvolutionProblem& p = c.problem;
    const Element element = *element_of(p.x.type);
    // Nobody may expect anything of the workspace.
    if (c.workspace_bytes > 0) std::memset(c.workspace, 0xff, c.workspace_bytes);
    const auto read = [&](Pass writes, const void* data, std::int64_t count) {
        if (writes == c.pass) return std::vector<float>();
        std::vector<float> values = load_all(data, element, count);
        if (element == Element::fp32 && p.settings.math != CUDNN_FMA_MATH) round_to_tf32(values);
        return values;
    };
    const std::vector<float> result =
        convolve(p, c.pass, read(Pass::backward_data, c.x, p.x.elements()),
                 read(Pass::backward_weights, c.w, p.w.elements()), read(Pass::forward, c.y, p.y.elements()));
    for (std::size_t i = 0; i < result.size(); ++i)
        blend(c.result(), element, static_cast<std::int64_t>(i), c.alpha, result[i], c.beta);
}

cudnnStatus_t queue(cudnnHandle_t handle, const Call& c, int algorithm, bool hangs) {
    const auto owner = dnn().handles.find(handle);
    if (!owner) return dnn_misuse(fmt::format("{}: no such handle (destroyed?)", c.function));
    const auto needed = workspace_of(c.problem, c.pass, algorithm);
    if (!needed) return dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "the double has no such algorithm for this convolution");
    if (*needed > c.workspace_bytes)
        return dnn_misuse(fmt::format("{}: algorithm {} needs {} bytes of workspace, not {}", c.function, algorithm,
                                      *needed, c.workspace_bytes));
    if (!are_operands_good(c)) return dnn_error(CUDNN_STATUS_BAD_PARAM, "an operand is not in device memory");
    const bool is_queued = enqueue(owner->stream, [c, hangs] { hangs ? wait_forever() : run(c); });
    return is_queued ? CUDNN_STATUS_SUCCESS : dnn_error(CUDNN_STATUS_BAD_PARAM, "the handle's stream is none");
}

float factor(const void* value) { return *static_cast<const float*>(value); }

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t y, int wanted, int* returned,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
    constexpr const char* function = "cudnnGetConvolutionForwardAlgorithm_v7";
    return dnn_call(function, [&](bool) {
        return propose(function, find_problem(function, x, w, convolution, y), ConvolutionPass::forward, wanted,
                       returned, results);
    });
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy,
                                                          cudnnConvolutionDescriptor_t convolution,
                                                          cudnnTensorDescriptor_t dx, int wanted, int* returned,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
    constexpr const char* function = "cudnnGetConvolutionBackwardDataAlgorithm_v7";
    return dnn_call(function, [&](bool) {
        return propose(function, find_problem(function, dx, w, convolution, dy), ConvolutionPass::backward_data, wanted,
                       returned, results);
    });
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy,
                                                            cudnnConvolutionDescriptor_t convolution,
                                                            cudnnFilterDescriptor_t dw, int wanted, int* returned,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
    constexpr const char* function = "cudnnGetConvolutionBackwardFilterAlgorithm_v7";
    return dnn_call(function, [&](bool) {
        return propose(function, find_problem(function, x, dw, convolution, dy), ConvolutionPass::backward_weights,
                       wanted, returned, results);
    });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t convolution,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
                                                      std::size_t* bytes) {
    constexpr const char* function = "cudnnGetConvolutionForwardWorkspaceSize";
    return dnn_call(function, [&](bool) {
        return tell_workspace(find_problem(function, x, w, convolution, y), ConvolutionPass::forward, algorithm, bytes);
    });
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
    constexpr const char* function = "cudnnGetConvolutionBackwardDataWorkspaceSize";
    return dnn_call(function, [&](bool) {
        return tell_workspace(find_problem(function, dx, w, convolution, dy), ConvolutionPass::backward_data, algorithm,
                              bytes);
    });
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t dw, cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
    constexpr const char* function = "cudnnGetConvolutionBackwardFilterWorkspaceSize";
    return dnn_call(function, [&](bool) {
        return tell_workspace(find_problem(function, x, dw, convolution, dy), ConvolutionPass::backward_weights,
                              algorithm, bytes);
    });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                      const void* x, cudnnFilterDescriptor_t w_shape, const void* w,
                                      cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_shape, void* y) {
    constexpr const char* function = "cudnnConvolutionForward";
    return dnn_call(function, [&](bool hangs) {
        const auto problem = find_problem(function, x_shape, w_shape, convolution, y_shape);
        if (!problem) return CUDNN_STATUS_BAD_PARAM;
        return queue(
            handle,
            {function, *problem, ConvolutionPass::forward, factor(alpha), factor(beta), x, w, y, workspace, bytes},
            algorithm, hangs);
    });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_shape,
                                           const void* w, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, std::size_t bytes,
                                           const void* beta, cudnnTensorDescriptor_t dx_shape, void* dx) {
    constexpr const char* function = "cudnnConvolutionBackwardData";
    return dnn_call(function, [&](bool hangs) {
        const auto problem = find_problem(function, dx_shape, w_shape, convolution, dy_shape);
        if (!problem) return CUDNN_STATUS_BAD_PARAM;
        return queue(handle,
                     {function, *problem, ConvolutionPass::backward_data, factor(alpha), factor(beta), dx, w, dy,
                      workspace, bytes},
                     algorithm, hangs);
    });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                             const void* x, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t bytes, const void* beta, cudnnFilterDescriptor_t dw_shape,
                                             void* dw) {
    constexpr const char* function = "cudnnConvolutionBackwardFilter";
    return dnn_call(function, [&](bool hangs) {
        const auto problem = find_problem(function, x_shape, dw_shape, convolution, dy_shape);
        if (!problem) return CUDNN_STATUS_BAD_PARAM;
        return queue(handle,
                     {function, *problem, ConvolutionPass::backward_weights, factor(alpha), factor(beta), x, dw, dy,
                      workspace, bytes},
                     algorithm, hangs);
    });
}
}
