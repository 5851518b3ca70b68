// Batch norm by cuDNN where it has it: images of fp32 and fp16 with fp32 parameters.
#include "gpu/batch_norm.hpp"

#include <array>

#include "base/error.hpp"
#include "gpu/dnn_descriptors.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

using step::Norm;

constexpr auto plain = CUDNN_BATCHNORM_OPS_BN;

/// What both passes share. The persistent mode keeps what it has read on the multiprocessors; its reductions have their
/// range in fp32, so only halves use it.
struct DnnNorm {
    explicit DnnNorm(const Norm& norm, DType dtype)
        : mode(dtype == DType::fp16 ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL),
          x(make_image(dtype, norm.rows, norm.features, norm.spatial, 1)),
          features(make_image(DType::fp32, 1, norm.features, 1, 1)),
          epsilon(norm.epsilon) {}

    cudnnBatchNormMode_t mode;
    TensorDescriptor x, features;
    double epsilon;
    std::size_t workspace_bytes = 0;
    std::byte* workspace = nullptr;

    std::string text() const {
        return mode == CUDNN_BATCHNORM_SPATIAL ? "cuDNN batch norm, spatial" : "cuDNN batch norm, spatial persistent";
    }
};

class DnnForward final : public Kernel {
public:
    DnnForward(DnnNorm norm, const Operands& o, Dnn& dnn) : dnn_(dnn), norm_(std::move(norm)), o_(o) {}
    void enqueue(const Moment&, cudaStream_t stream) override {
        const float one = 1, zero = 0;
        const bool has_running = o_.out.size() > 4;
        check_dnn(
            cudnnBatchNormalizationForwardTrainingEx(
                dnn_.on(stream), norm_.mode, plain, &one, &zero, norm_.x.get(), o_.in[0].data, nullptr, nullptr,
                norm_.x.get(), o_.out[0].data, norm_.features.get(), o_.in[1].data, o_.in[2].data, running_momentum,
                has_running ? o_.out[3].data : nullptr, has_running ? o_.out[4].data : nullptr, norm_.epsilon,
                o_.out[1].data, o_.out[2].data, nullptr, norm_.workspace, norm_.workspace_bytes, nullptr, 0),
            "cudnnBatchNormalizationForwardTrainingEx");
    }
    std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(norm_.workspace_bytes); }
    void bind_workspace(std::byte* workspace) override { norm_.workspace = workspace; }
    std::string algorithm() const override { return norm_.text(); }

private:
    Dnn& dnn_;
    DnnNorm norm_;
    Operands o_;
};

class DnnBackward final : public Kernel {
public:
    DnnBackward(DnnNorm norm, const Operands& o, Dnn& dnn) : dnn_(dnn), norm_(std::move(norm)), o_(o) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        const float one = 1, zero = 0, before = adds(o_.out[1].access, moment) ? 1 : 0;
        check_dnn(cudnnBatchNormalizationBackwardEx(
                      dnn_.on(stream), norm_.mode, plain, &one, &zero, &one, &before, norm_.x.get(), o_.in[1].data,
                      nullptr, nullptr, norm_.x.get(), o_.in[0].data, nullptr, nullptr, norm_.x.get(), o_.out[0].data,
                      norm_.features.get(), o_.in[2].data, nullptr, o_.out[1].data, o_.out[2].data, norm_.epsilon,
                      o_.in[3].data, o_.in[4].data, nullptr, norm_.workspace, norm_.workspace_bytes, nullptr, 0),
                  "cudnnBatchNormalizationBackwardEx");
    }
    std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(norm_.workspace_bytes); }
    void bind_workspace(std::byte* workspace) override { norm_.workspace = workspace; }
    std::string algorithm() const override { return norm_.text(); }

private:
    Dnn& dnn_;
    DnnNorm norm_;
    Operands o_;
};

bool are_fp32(std::initializer_list<const Operand*> operands) {
    for (const Operand* o : operands)
        if (o->dtype != DType::fp32) return false;
    return true;
}

/// Limits of cuDNN's kernels, as PyTorch found them: 32-bit indices, and a grid over the batch.
bool is_within_limits(const Norm& n) {
    constexpr std::int64_t most_rows = 880801, most_elements = std::int64_t{1} << 31;
    return n.rows <= most_rows && n.rows * n.features * n.spatial < most_elements;
}

bool fits_dnn(const Norm& n, const Operands& o) {
    const bool is_forward = n.pass == step::Pass::forward;
    if (n.spatial == 1 || !is_within_limits(n)) return false;
    if (o.in[0].dtype != DType::fp32 && o.in[0].dtype != DType::fp16) return false;
    if (is_forward) return o.in.size() > 2 && are_fp32({&o.in[1], &o.in[2]}) && (o.out.size() == 3 || o.out.size() > 4);
    return o.out.size() > 2 && are_fp32({&o.in[2], &o.out[1], &o.out[2]}) && o.out[1].access == o.out[2].access;
}

/// True when cuDNN takes the norm. What its forward pass would hand to the backward pass in a reserve, the graph has no
/// tensor for.
bool ask(DnnNorm& norm, step::Pass pass, cudnnHandle_t handle) {
    const auto x = norm.x.get();
    std::size_t reserve = 0;
    if (cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, norm.mode, plain, nullptr, x, &reserve) !=
            CUDNN_STATUS_SUCCESS ||
        reserve > 0)
        return false;
    const cudnnStatus_t status =
        pass == step::Pass::forward
            ? cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                  handle, norm.mode, plain, x, nullptr, x, norm.features.get(), nullptr, &norm.workspace_bytes)
            : cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle, norm.mode, plain, x, nullptr, x, nullptr, x,
                                                                norm.features.get(), nullptr, &norm.workspace_bytes);
    return status == CUDNN_STATUS_SUCCESS;
}

void check(const Norm& n, const Operands& o) {
    const bool is_forward = n.pass == step::Pass::forward;
    expect_slots(o, is_forward ? 2 : 5, is_forward ? 3 : 2, "batch norm");
    if (o.out[0].access != step::Access::overwrite) throw LogicError("batch norm can't add to an activation");
    for (const Operand* image : {&o.in[0], static_cast<const Operand*>(&o.out[0])}) {
        if (image->dtype != o.in[0].dtype) throw LogicError("images of a batch norm must be of one type");
        if (n.spatial > 1 && image->layout == step::Layout::row_major)
            throw LogicError("images of a batch norm must be channels-last on a GPU");
    }
}

}  // namespace

std::unique_ptr<Kernel> make_batch_norm(const Norm& n, const Operands& o, const KernelSetup& setup) {
    check(n, o);
    if (!fits_dnn(n, o)) return make_own_batch_norm(n, o);
    DnnNorm norm(n, o.in[0].dtype);
    if (!ask(norm, n.pass, setup.dnn.handle())) return make_own_batch_norm(n, o);
    if (n.pass == step::Pass::forward) return std::make_unique<DnnForward>(std::move(norm), o, setup.dnn);
    return std::make_unique<DnnBackward>(std::move(norm), o, setup.dnn);
}

}  // namespace lockstep::gpu
