// The tensors a model brings into a step: inputs, labels, parameters and their gradients.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// Which layers need a gradient of their output: those that train or come after one that does; how often each parameter
/// is used on each stage, and what its gradient is a sum over.
void mark_gradient_flow(Assembly& a);

/// The model's inputs that a chunk reads, and the labels in the last one, a copy for each micro-batch of the step; with
/// a data pipeline, what it brings is staged apart from what forward reads, so that the next batch can arrive during a
/// step. Sets Chunk::input to the block that brings a micro-batch's data, when there is a pipeline.
void make_inputs(Assembly& a, Chunk& chunk);

/// Parameters: fp32, or bf16 under Precision::bf16; normal, one or zero by role. Convolution weights are channels-last
/// unless reordered or part of ZeRO's flat tensors.
void make_parameters(Assembly& a, Chunk& chunk);

/// Gradients, after the groups: of the parameter's dtype; fp16 kernels write one of their own that is cast into it.
void make_gradients(Assembly& a, Chunk& chunk);

}  // namespace lockstep::step
