// Who writes a parameter's gradient, how, and what happens when it is complete.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// True when the layer's parameter in `slot` has a gradient.
bool has_gradient(const Assembly& a, const model::Layer& layer, std::size_t slot);
/// How the next contribution to a parameter's gradient is written: the first of a pass overwrites (its sum over
/// micro-batches accumulates), later ones (tied weights) accumulate.
Write next_contribution(Assembly& a, model::ParameterId id);
/// A contribution has been written; after the last: cast to the main gradient where there is one, then its bucket.
void contribution_done(Assembly& a, model::ParameterId id);

}  // namespace lockstep::step
