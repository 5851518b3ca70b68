// Which layers belong to which chunk of a pipeline.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"
#include "plan/plan.hpp"

namespace lockstep::plan {

/// Blocks of the model: different values of Layer::repeat_group.
int block_count(const model::Model& model);

/// Blocks of each chunk of the pipeline: Split::stage_blocks, or all equal. Throws InputError, proposing stage_blocks,
/// when blocks and chunks don't fit.
std::vector<int> blocks_of_chunks(int blocks, const Plan& plan);

/// By layer: its chunk, 0 to Plan::chunks() - 1 in the order the pipeline visits them (chunk c is on stage c modulo
/// pp). A block's layers stay together. What comes before the first block is in chunk 0, what comes after the last one
/// in the last chunk, and what lies between two blocks goes with the one before. Throws InputError as blocks_of_chunks.
std::vector<int> chunk_of_layer(const model::Model& model, const Plan& plan);

/// Why the model can't be cut as `chunks` (by layer) say; empty when it can. One tensor may cross each border, forward
/// only, and every chunk has a layer; the model's inputs are read in chunk 0.
std::vector<std::string> cut_refusals(const model::Model& model, const std::vector<int>& chunks, int count);

}  // namespace lockstep::plan
