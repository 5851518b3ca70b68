// A model cut down to its first blocks: what all blocks cost, told by a few.
#pragma once

#include <string>

#include "model/model.hpp"

namespace lockstep::model {

/// Why a few blocks (Layer::repeat_group) don't tell what all of them are; "" when they do: each block is the same
/// layers with parameters of its own, reads nothing but the block before it (and layers before all blocks), and is read
/// by nothing but the block after it; what comes after the blocks reads the last one.
std::string why_blocks_differ(const Model& model);

/// The model with its first `blocks` blocks (from 1 to all); what read the last block reads the last that is kept.
/// The model's blocks must be alike (why_blocks_differ); LogicError otherwise.
Model with_first_blocks(const Model& model, int blocks);

}  // namespace lockstep::model
