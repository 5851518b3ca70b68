// Makes the kernel of an op: one function per family, one file each.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/kernel.hpp"

namespace lockstep::gpu {

class BlasLt;
class Dnn;

/// What all kernels of an executor share.
struct KernelSetup {
    BlasLt& blas;
    Dnn& dnn;
    std::uint64_t seed = 1;
};

/// The kernel of a compute op or a copy. Slots as step/op.hpp lists them. Throws LogicError for operands that don't fit
/// and RuntimeError, naming the op, for what this device or a library can't do.
std::unique_ptr<Kernel> make_kernel(const step::Op& op, const Operands& operands, const KernelSetup& setup);

// Libraries: gemm.cpp, convolution.cpp, batch_norm.cpp, pool.cpp, attention.cpp
std::unique_ptr<Kernel> make_gemm(const step::Gemm&, MathType math, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_convolution(const step::Convolution&, MathType math, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_batch_norm(const step::Norm&, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_pool(const step::Pool&, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_attention(const step::Attention&, MathType math, const Operands&, const KernelSetup&);

// Own kernels (*.cu): what no library has.
std::unique_ptr<Kernel> make_reorder(const step::Reorder&, const Operands&);
std::unique_ptr<Kernel> make_row_norm(const step::Norm&, const Operands&);
std::unique_ptr<Kernel> make_elementwise(const step::Elementwise&, const Operands&);
std::unique_ptr<Kernel> make_gated(const step::Elementwise&, const Operands&);
std::unique_ptr<Kernel> make_rotary(const step::Elementwise&, const Operands&);
std::unique_ptr<Kernel> make_column_sum(const step::ColumnSum&, const Operands&);
std::unique_ptr<Kernel> make_position_sum(const step::PositionSum&, const Operands&);
std::unique_ptr<Kernel> make_embedding(const step::Embedding&, const Operands&);
std::unique_ptr<Kernel> make_first_token(const step::FirstToken&, const Operands&);
std::unique_ptr<Kernel> make_softmax_loss(const step::SoftmaxLoss&, const Operands&);
std::unique_ptr<Kernel> make_dropout(const step::Dropout&, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_optimizer(const step::OptimizerUpdate&, const Operands&);
std::unique_ptr<Kernel> make_copy(double factor, const Operands&);
std::unique_ptr<Kernel> make_fill(const step::Fill&, const Operands&);
std::unique_ptr<Kernel> make_block_transpose(const step::BlockTranspose&, const Operands&);
std::unique_ptr<Kernel> make_slice(const step::Slice&, const Operands&);
std::unique_ptr<Kernel> make_route(const step::Route&, const Operands&, const KernelSetup&);
std::unique_ptr<Kernel> make_dispatch(const step::Dispatch&, const Operands&);
std::unique_ptr<Kernel> make_combine(const step::Combine&, const Operands&);
std::unique_ptr<Kernel> make_found_inf(const Operands&);
std::unique_ptr<Kernel> make_update_loss_scale(const Operands&);

/// Throws LogicError unless the op has this many slots.
void expect_slots(const Operands& operands, std::size_t least_in, std::size_t least_out, const char* kernel);

}  // namespace lockstep::gpu
