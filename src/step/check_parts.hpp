// The parts of check(): each throws InputError naming the ops at fault.
#pragma once

#include "step/graph.hpp"

namespace lockstep::step {

/// The tensor table: nothing empty, views inside their storage, parts of rings apart, shards that are possible.
void check_tensors(const StepGraph& graph);
/// check_tensors; ids in range, communicators of the size the mesh gives, ops numbered in order, messages of
/// micro-batches that exist.
void check_structure(const StepGraph& graph);
/// Operands of every op: how many, how many elements, which dtype.
void check_slots(const StepGraph& graph);
/// Every value is written before it is read, in the same micro-batch if it lives no longer.
void check_reads(const StepGraph& graph);
/// Messages in pairs, collectives in one order, and nobody waits for ever, over one rank per pipeline stage. The ranks
/// of a stage run one program, so that communicators inside a stage always agree. Nothing is buffered: a P2PGroup is
/// done when all its messages have met their other ends, a collective when all its stages have arrived.
void check_progress(const StepGraph& graph);

}  // namespace lockstep::step
