// The ops of the optimizer.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// Updates every trained parameter of a stage, or this rank's part of it (ZeRO): one op for all, or one each
/// (Framework::optimizer_fusion); then gathers what ZeRO 1 and 2 updated. State: sgd-momentum one fp32 tensor, adam
/// two; bf16 parameters have an fp32 master weight. Starts at zero, masters at the parameter's values.
void add_optimizer(Assembly& a, int stage);

}  // namespace lockstep::step
