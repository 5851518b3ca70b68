// Who writes a parameter's gradient, how, and what happens when it is complete.
#pragma once

#include "step/layer_step.hpp"

namespace lockstep::step {

/// True when the layer's parameter in `slot` has a gradient.
bool has_gradient(const LayerStep& at, std::size_t slot);
/// How the next contribution to a parameter's gradient is written: the first of a pass overwrites (its sum over
/// micro-batches accumulates), later ones (tied weights) accumulate.
Write next_contribution(const LayerStep& at, std::size_t slot);
/// A contribution has been written; after the last: cast to the main gradient where there is one, then its group.
void contribution_done(const LayerStep& at, std::size_t slot);

}  // namespace lockstep::step
