// The ops of the backward pass.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// The layers of a chunk in reverse order, into the open block. Gradients of a tensor with several consumers are added
/// as they come (as autograd does); sums pass theirs on to both inputs; nothing is computed for inputs that need no
/// gradient. A parameter used twice gets its contributions accumulated; with the last one its gradient is complete.
void add_backward(Assembly& a, Chunk& chunk);

}  // namespace lockstep::step
