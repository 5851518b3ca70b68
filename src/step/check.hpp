// Refuses a step graph that would hang, mix up messages or read what nobody wrote.
#pragma once

#include "step/graph.hpp"

namespace lockstep::step {

/// Runs the graph symbolically over all ranks (one representative per class and communicator neighbour) with zero
/// buffering, in-order streams and the issue order. Throws InputError naming the ops for: a cycle of waits (also across
/// communicators), an unmatched message, collectives of one communicator in different order or with different count,
/// kind or dtype, a read before any write, a slot whose shape or dtype does not fit its op, a view outside its storage,
/// a dangling id.
void check(const StepGraph& graph);

}  // namespace lockstep::step
