// Chains of element-wise ops that a framework makes one kernel of: what the simulator is told of them.
#pragma once

#include "step/graph.hpp"

namespace lockstep::step {

/// Marks each element-wise op, dropout or norm that directly follows another of these in its block and reads its first
/// result: it is fused (no launch of its own, no host time) and does not read that result from memory. Where nobody
/// else reads the result, the op before does not write it either. Two norms are not fused: each reduces what it reads.
/// Real executors run such ops one by one. Tensors keep their memory, which counts too much where a result is never
/// written.
void fuse_elementwise(StepGraph& graph);

}  // namespace lockstep::step
