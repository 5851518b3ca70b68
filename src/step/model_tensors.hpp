// The tensors a model brings into a step: inputs, labels, parameters and their gradients.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// Which layers need a gradient of their output: those that train or come after one that does.
void mark_gradient_flow(Assembly& a);

/// Inputs [micro-batch, shape...] and labels, one copy for each micro-batch of the step; with a data pipeline, what it
/// brings is staged apart from what forward reads, so that the next batch can arrive during a step.
/// Returns the block that brings a micro-batch's data, or an invalid id when there is no pipeline.
BlockId make_inputs(Assembly& a);

/// Parameters: fp32, or bf16 under Precision::bf16; normal, one or zero by role. Convolution weights are channels-last
/// unless reordered.
void make_parameters(Assembly& a);

/// Gradients, after the buckets: of the parameter's dtype; fp16 kernels write one of their own that is cast into it.
void make_gradients(Assembly& a);

}  // namespace lockstep::step
