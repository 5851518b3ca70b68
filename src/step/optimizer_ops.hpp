// The ops of the optimizer.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// Updates every trained parameter: one op for all, or one each (Framework::optimizer_fusion). State: sgd-momentum one
/// fp32 tensor, adam two; bf16 parameters have an fp32 master weight. Starts at zero, masters at the parameter's
/// values.
void add_optimizer(Assembly& a);

}  // namespace lockstep::step
