// Attention by cuDNN's fused engines.
#pragma once

#include <memory>
#include <string>

#include "gpu/kernels.hpp"

namespace lockstep::gpu {

/// Null where cuDNN has none for it here; then `why_not` says why.
std::unique_ptr<Kernel> make_fused_attention(const step::Attention& op, const Operands& operands,
                                             const KernelSetup& setup, std::string& why_not);

}  // namespace lockstep::gpu
