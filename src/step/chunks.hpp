// The chunks of a pipeline: which layers each has, what travels between them, and how many passes are in flight.
#pragma once

#include "plan/pipeline.hpp"
#include "step/assembly.hpp"

namespace lockstep::step {

/// Fills Assembly::chunks and chunk_of. Throws InputError when more than one tensor crosses between two chunks, naming
/// the layers.
void make_chunks(Assembly& a);
/// Makes the tensors that come in from other chunks.
void make_boundary_tensors(Assembly& a, Chunk& chunk);
/// After the blocks of a chunk are written: gives what its backward pass reads from its forward pass, and what travels,
/// as many slots as micro-batches are in flight.
void assign_slots(Assembly& a, Chunk& chunk);

/// The order in which a stage issues its passes.
std::vector<plan::PipelineSlot> order_of_stage(const Assembly& a, int stage);
/// The program of a stage: weights once, its passes with the messages between stages, then what happens once at the
/// end.
struct StageBlocks {
    BlockId weights, gradient_sync, optimizer;
};
Program make_program(Assembly& a, int stage, const StageBlocks& blocks);

}  // namespace lockstep::step
