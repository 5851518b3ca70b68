// Computing parts of the forward pass again in the backward pass, so that they needn't be kept.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// Full recomputation, before the backward ops of the model's block `block`: its forward ops once more, into the open
/// block. They write the same tensors, which so live anew; the block's output goes to a scratch tensor.
void recompute_block(Assembly& a, Chunk& chunk, int block);
/// Selective recomputation, before the backward ops of an attention layer: what only its backward pass reads.
void recompute_layer(Assembly& a, Chunk& chunk, model::LayerId layer);

}  // namespace lockstep::step
