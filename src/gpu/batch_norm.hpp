// Batch norm by own kernels, for what cuDNN has no fast or no certain way: bf16, features without space, no shift.
#pragma once

#include "gpu/kernel.hpp"

namespace lockstep::gpu {

/// PyTorch's: running = 0.9 running + 0.1 batch.
inline constexpr double running_momentum = 0.1;

/// As make_batch_norm. Images must be channels-last.
std::unique_ptr<Kernel> make_own_batch_norm(const step::Norm& norm, const Operands& operands);

}  // namespace lockstep::gpu
