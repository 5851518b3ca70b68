// What a layer costs by itself; the whole cost with traffic is cost_of in model.hpp.
#pragma once

#include <cstdint>

#include "model/layer.hpp"

namespace lockstep::model {

/// Multiply-adds of the forward pass for one sample: convolution out c_in/groups k^2, linear rows in out (grouped too:
/// rows are tokens top_k), attention 2 s^2 heads head_dim (all s^2 scores, causal or not: the published convention; s
/// (s + memory) scores with a memory, a third product with relative positions); 0 for other kinds. Throws InputError
/// when it leaves 64 bits.
std::int64_t multiply_adds_per_sample(const Layer& layer);

}  // namespace lockstep::model
