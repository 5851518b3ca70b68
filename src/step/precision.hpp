// What a precision means for a step: dtypes of parameters, working copies, loss scaling.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// fp32 in fp32, tf32 and fp16-amp (which casts), bf16 in bf16 (whose optimizer keeps fp32 master weights). Throws
/// InputError for fp8.
DType parameter_dtype(Precision precision);

/// Of the gradient the optimizer reads: the parameter's.
DType gradient_dtype(Precision precision);

/// fp16-amp: norms keep fp32 parameters; all others are cast to fp16, once a step, in the open block.
void cast_working_copies(Assembly& a, int stage);

/// fp16-amp: the loss scale (65536 at first), its growth tracker and found-inf.
void make_loss_scale(Assembly& a);
/// fp16-amp, before the optimizer: looks for values that are not finite, on all ranks that hold a part of the model;
/// the host waits for the answer.
void check_finite(Assembly& a, const std::vector<TensorId>& gradients);
/// fp16-amp, after the optimizer.
void update_loss_scale(Assembly& a);

}  // namespace lockstep::step
