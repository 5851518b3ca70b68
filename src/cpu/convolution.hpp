// A convolution pass by oneDNN as a kernel, and how its packed weights are stored.
#pragma once

#include "cpu/onednn.hpp"

namespace lockstep::cpu {

/// [out, in / groups, k, k], or [groups, out / groups, in / groups, k, k].
dnnl::memory::dims weight_dims(const step::Convolution& convolution);

/// How a weight operand is stored: row-major, or the order that the convolution which was made first chose for this
/// tensor (`preferred` when it is this one; row-major when `preferred` needs padding and so doesn't fit the tensor).
dnnl::memory::desc stored_weight_desc(const step::Convolution& convolution, const Operand& weight,
                                      const dnnl::memory::desc& preferred, OneDnn& library);

}  // namespace lockstep::cpu
