#include "gpu/kernels.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"

namespace lockstep::gpu {

void expect_slots(const Operands& operands, std::size_t least_in, std::size_t least_out, const char* kernel) {
    if (operands.in.size() >= least_in && operands.out.size() >= least_out) return;
    throw LogicError(fmt::format("{} has {} inputs and {} outputs, needs {} and {}", kernel, operands.in.size(),
                                 operands.out.size(), least_in, least_out));
}

namespace {

struct Maker {
    MathType math;
    const Operands& o;
    const KernelSetup& setup;
    using Result = std::unique_ptr<Kernel>;

    Result operator()(const step::Gemm& op) const { return make_gemm(op, math, o, setup); }
    Result operator()(const step::Convolution& op) const { return make_convolution(op, math, o, setup); }
    Result operator()(const step::Attention& op) const { return make_attention(op, math, o, setup); }
    Result operator()(const step::Norm& op) const {
        return op.kind == model::Norm::Kind::batch ? make_batch_norm(op, o, setup) : make_row_norm(op, o);
    }
    Result operator()(const step::Elementwise& op) const {
        using Kind = step::Elementwise::Kind;
        if (op.kind == Kind::gated || op.kind == Kind::gated_backward) return make_gated(op, o);
        if (op.kind == Kind::rotary || op.kind == Kind::rotary_backward) return make_rotary(op, o);
        return make_elementwise(op, o);
    }
    Result operator()(const step::ColumnSum& op) const { return make_column_sum(op, o); }
    Result operator()(const step::PositionSum& op) const { return make_position_sum(op, o); }
    Result operator()(const step::Embedding& op) const { return make_embedding(op, o); }
    Result operator()(const step::FirstToken& op) const { return make_first_token(op, o); }
    Result operator()(const step::SoftmaxLoss& op) const { return make_softmax_loss(op, o); }
    Result operator()(const step::Pool& op) const { return make_pool(op, o, setup); }
    Result operator()(const step::Dropout& op) const { return make_dropout(op, o, setup); }
    Result operator()(const step::OptimizerUpdate& op) const { return make_optimizer(op, o); }
    Result operator()(const step::Reorder& op) const { return make_reorder(op, o); }
    Result operator()(const step::Cast&) const { return make_copy(1, o); }
    Result operator()(const step::Fill& op) const { return make_fill(op, o); }
    Result operator()(const step::FoundInf&) const { return make_found_inf(o); }
    Result operator()(const step::BlockTranspose& op) const { return make_block_transpose(op, o); }
    Result operator()(const step::Slice& op) const { return make_slice(op, o); }
    Result operator()(const step::Route& op) const { return make_route(op, o, setup); }
    Result operator()(const step::Dispatch& op) const { return make_dispatch(op, o); }
    Result operator()(const step::Combine& op) const { return make_combine(op, o); }
    Result operator()(const step::UpdateLossScale&) const { return make_update_loss_scale(o); }

    Result operator()(const step::Compute& op) const { return std::visit(*this, op); }
    Result operator()(const step::Copy& op) const {
        if (op.kind == step::Copy::Kind::input) return make_input(op.least_time);
        return make_copy(op.factor, o);
    }
    Result operator()(const step::HostSync&) const { return make_wait(); }
    Result operator()(const step::StreamWait&) const { return make_wait(); }
    /// Inputs are in place, but a batch may not come faster than the pipeline brings it: the stream sleeps that long.
    static Result make_input(Seconds least_time) {
        if (least_time.value <= 0) return make_wait();
        auto pause = std::make_shared<std::chrono::duration<double>>(least_time.value);
        return make_function_kernel([pause](const Moment&, cudaStream_t stream) {
            const auto sleep = [](void* duration) {
                std::this_thread::sleep_for(*static_cast<std::chrono::duration<double>*>(duration));
            };
            check_cuda(cudaLaunchHostFunc(stream, sleep, pause.get()), "cudaLaunchHostFunc");
        });
    }
    /// The executor does the waiting.
    static Result make_wait() {
        return make_function_kernel([](const Moment&, cudaStream_t) {});
    }
    Result operator()(const step::Collective&) const { throw LogicError("a collective has no kernel"); }
    Result operator()(const step::P2PGroup&) const { throw LogicError("a message has no kernel"); }
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const step::Op& op, const Operands& operands, const KernelSetup& setup) {
    try {
        return std::visit(Maker{op.math, operands, setup}, op.kind);
    } catch (const RuntimeError& error) {
        throw RuntimeError(fmt::format("op {}: {}", op.name, error.what()));
    } catch (const LogicError& error) { throw LogicError(fmt::format("op {}: {}", op.name, error.what())); }
}

}  // namespace lockstep::gpu
