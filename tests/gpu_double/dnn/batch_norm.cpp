// Batch norm of cuDNN's interface: spatial, of images with features last, parameters and statistics in fp32.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "gpu_double/dnn/state.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr std::size_t workspace_bytes = 4096;

/// What both passes are told.
struct Norm {
    const char* function;
    cudnnBatchNormMode_t mode;
    cudnnBatchNormOps_t ops;
    std::optional<Image> x;
    double epsilon = 0;
    void* workspace = nullptr;
    std::size_t bytes = 0;

    Element element() const { return *element_of(x->type); }
    std::int64_t rows() const { return x->n * x->pixels(); }
};

/// Empty, and a misuse reported, when one is none or the images differ.
std::optional<Image> find_images(const char* function, std::initializer_list<cudnnTensorDescriptor_t> images,
                                 cudnnTensorDescriptor_t features) {
    std::optional<Image> first;
    for (const cudnnTensorDescriptor_t one : images) {
        const auto image = dnn().images.find(one);
        if (!image || image->n == 0 || (first && *first != *image)) {
            dnn_misuse(fmt::format("{}: an image's descriptor is none, not set, or not as the others", function));
            return std::nullopt;
        }
        first = *image;
    }
    const auto row = dnn().images.find(features);
    if (!row || row->elements() != first->c || row->c != first->c || row->type != CUDNN_DATA_FLOAT) {
        dnn_misuse(fmt::format("{}: parameters must be fp32, one per feature", function));
        return std::nullopt;
    }
    return first;
}

/// What the double has: no activation, features last, the persistent mode on halves alone.
bool is_supported(cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const Image& x) {
    if (ops != CUDNN_BATCHNORM_OPS_BN || x.format != CUDNN_TENSOR_NHWC) return false;
    if (mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT) return x.type == CUDNN_DATA_HALF;
    return mode == CUDNN_BATCHNORM_SPATIAL && element_of(x.type).has_value();
}

struct Range {
    const void* begin;
    std::int64_t bytes;
    const char* name;
};
cudnnStatus_t queue(cudnnHandle_t handle, const Norm& norm, std::initializer_list<Range> ranges, bool hangs,
                    std::function<void()> work) {
    const auto owner = dnn().handles.find(handle);
    if (!owner) return dnn_misuse(fmt::format("{}: no such handle (destroyed?)", norm.function));
    if (!is_supported(norm.mode, norm.ops, *norm.x))
        return dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "the double has no such batch norm");
    if (norm.bytes < workspace_bytes)
        return dnn_misuse(fmt::format("{}: {} bytes of workspace, not {}", norm.function, norm.bytes, workspace_bytes));
    if (!expect_device_range(norm.workspace, norm.bytes, fmt::format("{}: the workspace", norm.function).c_str()))
        return CUDNN_STATUS_BAD_PARAM;
    for (const Range& range : ranges)
        if (!expect_device_range(range.begin, static_cast<std::size_t>(range.bytes),
                                 fmt::format("{}: {}", norm.function, range.name).c_str()))
            return CUDNN_STATUS_BAD_PARAM;
    const bool is_queued = enqueue(owner->stream, [=] {
        if (hangs) wait_forever();
        std::memset(norm.workspace, 0xff, norm.bytes);  // nobody may expect anything of it
        work();
    });
    return is_queued ? CUDNN_STATUS_SUCCESS : dnn_error(CUDNN_STATUS_BAD_PARAM, "the handle's stream is none");
}

struct Forward {
    Norm norm;
    float alpha, beta, factor;
    const void* x;
    void* y;
    const float *scale, *bias;
    float *running_mean, *running_variance, *mean, *inverse;
    void operator()() const {
        const std::int64_t rows = norm.rows(), c = norm.x->c;
        const std::vector<float> values = load_all(x, norm.element(), rows * c);
        for (std::int64_t f = 0; f < c; ++f) {
            double sum = 0, squares = 0;
            for (std::int64_t r = 0; r < rows; ++r) sum += values[static_cast<std::size_t>(r * c + f)];
            const double average = sum / static_cast<double>(rows);
            for (std::int64_t r = 0; r < rows; ++r)
                squares += std::pow(values[static_cast<std::size_t>(r * c + f)] - average, 2);
            const double variance = squares / static_cast<double>(rows);
            const double unbiased = rows > 1 ? squares / static_cast<double>(rows - 1) : variance;
            mean[f] = static_cast<float>(average);
            inverse[f] = static_cast<float>(1 / std::sqrt(variance + norm.epsilon));
            if (running_mean != nullptr) {
                running_mean[f] += factor * (mean[f] - running_mean[f]);
                running_variance[f] += factor * (static_cast<float>(unbiased) - running_variance[f]);
            }
            for (std::int64_t r = 0; r < rows; ++r)
                blend(y, norm.element(), r * c + f, alpha,
                      (values[static_cast<std::size_t>(r * c + f)] - mean[f]) * inverse[f] * scale[f] + bias[f], beta);
        }
    }
};

struct Backward {
    Norm norm;
    float alpha, beta, parameter_alpha, parameter_beta;
    const void *x, *dy;
    void* dx;
    const float* scale;
    float *dscale, *dbias;
    const float *mean, *inverse;
    void operator()() const {
        const std::int64_t rows = norm.rows(), c = norm.x->c;
        const std::vector<float> values = load_all(x, norm.element(), rows * c),
                                 gradients = load_all(dy, norm.element(), rows * c);
        for (std::int64_t f = 0; f < c; ++f) {
            const auto normalised = [&](std::int64_t r) {
                return (values[static_cast<std::size_t>(r * c + f)] - mean[f]) * inverse[f];
            };
            double sum = 0, product = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                sum += gradients[static_cast<std::size_t>(r * c + f)];
                product += double{gradients[static_cast<std::size_t>(r * c + f)]} * normalised(r);
            }
            blend(dscale, Element::fp32, f, parameter_alpha, static_cast<float>(product), parameter_beta);
            blend(dbias, Element::fp32, f, parameter_alpha, static_cast<float>(sum), parameter_beta);
            const auto average = static_cast<float>(sum / static_cast<double>(rows)),
                       tilt = static_cast<float>(product / static_cast<double>(rows));
            for (std::int64_t r = 0; r < rows; ++r)
                blend(dx, norm.element(), r * c + f, alpha,
                      scale[f] * inverse[f] *
                          (gradients[static_cast<std::size_t>(r * c + f)] - average - normalised(r) * tilt),
                      beta);
        }
    }
};

float factor(const void* value) { return *static_cast<const float*>(value); }

cudnnStatus_t tell_workspace(cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const std::optional<Image>& x,
                             std::size_t* bytes) {
    if (!x) return CUDNN_STATUS_BAD_PARAM;
    if (!is_supported(mode, ops, *x)) return dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "the double has no such batch norm");
    *bytes = workspace_bytes;
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t y, cudnnTensorDescriptor_t features, cudnnActivationDescriptor_t,
    std::size_t* bytes) {
    constexpr const char* function = "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize";
    return dnn_call(function, [&](bool) {
        return tell_workspace(mode, ops, find_images(function, {x, y}, features), bytes);
    });
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(cudnnHandle_t, cudnnBatchNormMode_t mode,
                                                                cudnnBatchNormOps_t ops, cudnnTensorDescriptor_t x,
                                                                cudnnTensorDescriptor_t, cudnnTensorDescriptor_t dy,
                                                                cudnnTensorDescriptor_t, cudnnTensorDescriptor_t dx,
                                                                cudnnTensorDescriptor_t features,
                                                                cudnnActivationDescriptor_t, std::size_t* bytes) {
    constexpr const char* function = "cudnnGetBatchNormalizationBackwardExWorkspaceSize";
    return dnn_call(function, [&](bool) {
        return tell_workspace(mode, ops, find_images(function, {x, dy, dx}, features), bytes);
    });
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t,
                                                                   cudnnBatchNormOps_t, cudnnActivationDescriptor_t,
                                                                   cudnnTensorDescriptor_t, std::size_t* bytes) {
    return dnn_call("cudnnGetBatchNormalizationTrainingExReserveSpaceSize", [&](bool) {
        *bytes = 0;
        return CUDNN_STATUS_SUCCESS;
    });
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_shape, const void* x, cudnnTensorDescriptor_t, const void*,
    cudnnTensorDescriptor_t y_shape, void* y, cudnnTensorDescriptor_t features, const void* scale, const void* bias,
    double average_factor, void* running_mean, void* running_variance, double epsilon, void* mean, void* inverse,
    cudnnActivationDescriptor_t, void* workspace, std::size_t bytes, void*, std::size_t) {
    constexpr const char* function = "cudnnBatchNormalizationForwardTrainingEx";
    return dnn_call(function, [&](bool hangs) {
        const Norm norm{function, mode,      ops,  find_images(function, {x_shape, y_shape}, features),
                        epsilon,  workspace, bytes};
        if (!norm.x) return CUDNN_STATUS_BAD_PARAM;
        if ((running_mean == nullptr) != (running_variance == nullptr))
            return dnn_misuse(fmt::format("{}: only one of the running statistics", function));
        const std::int64_t image = norm.x->elements() * static_cast<std::int64_t>(size_of(norm.element())),
                           row = norm.x->c * static_cast<std::int64_t>(sizeof(float));
        const std::int64_t running = running_mean == nullptr ? 0 : row;
        return queue(handle, norm,
                     {{x, image, "x"},
                      {y, image, "y"},
                      {scale, row, "scale"},
                      {bias, row, "bias"},
                      {running_mean, running, "running mean"},
                      {running_variance, running, "running variance"},
                      {mean, row, "saved mean"},
                      {inverse, row, "saved inverse variance"}},
                     hangs,
                     Forward{norm, factor(alpha), factor(beta), static_cast<float>(average_factor), x, y,
                             static_cast<const float*>(scale), static_cast<const float*>(bias),
                             static_cast<float*>(running_mean), static_cast<float*>(running_variance),
                             static_cast<float*>(mean), static_cast<float*>(inverse)});
    });
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha, const void* beta,
    const void* parameter_alpha, const void* parameter_beta, cudnnTensorDescriptor_t x_shape, const void* x,
    cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t dy_shape, const void* dy, cudnnTensorDescriptor_t,
    void*, cudnnTensorDescriptor_t dx_shape, void* dx, cudnnTensorDescriptor_t features, const void* scale, const void*,
    void* dscale, void* dbias, double epsilon, const void* mean, const void* inverse, cudnnActivationDescriptor_t,
    void* workspace, std::size_t bytes, void*, std::size_t) {
    constexpr const char* function = "cudnnBatchNormalizationBackwardEx";
    return dnn_call(function, [&](bool hangs) {
        const Norm norm{function, mode,      ops,  find_images(function, {x_shape, dy_shape, dx_shape}, features),
                        epsilon,  workspace, bytes};
        if (!norm.x) return CUDNN_STATUS_BAD_PARAM;
        const std::int64_t image = norm.x->elements() * static_cast<std::int64_t>(size_of(norm.element())),
                           row = norm.x->c * static_cast<std::int64_t>(sizeof(float));
        return queue(
            handle, norm,
            {{x, image, "x"},
             {dy, image, "dy"},
             {dx, image, "dx"},
             {scale, row, "scale"},
             {dscale, row, "dscale"},
             {dbias, row, "dbias"},
             {mean, row, "saved mean"},
             {inverse, row, "saved inverse variance"}},
            hangs,
            Backward{norm, factor(alpha), factor(beta), factor(parameter_alpha), factor(parameter_beta), x, dy, dx,
                     static_cast<const float*>(scale), static_cast<float*>(dscale), static_cast<float*>(dbias),
                     static_cast<const float*>(mean), static_cast<const float*>(inverse)});
    });
}
}
