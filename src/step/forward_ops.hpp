// The ops of the forward pass.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// Once a step: weights of a chunk in the orders that convolution kernels want (MemoryFormat::packed), in the open
/// block.
void pack_weights(Assembly& a, Chunk& chunk);
/// The layers of a chunk in order, into the open block: fills each layer's output and saved tensors, and the loss. A
/// dropout of probability 0 and a flatten make no op: a flattened tensor is a view whose features are in memory order.
void add_forward(Assembly& a, Chunk& chunk);

}  // namespace lockstep::step
