// Makes the step graph that is one collective over all ranks.
#pragma once

#include "base/collective.hpp"
#include "machine/placement.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

/// One collective of all ranks, each step again. The buffer has as many whole elements a rank as fit into `bytes`,
/// counted as nccl-tests count them (see cost::buffer_bytes). all_reduce and broadcast are in place; the others go from
/// a buffer to another. Buffers hold zeros, which sums leave as they are for any number of steps. Throws InputError
/// when no element a rank fits into `bytes`, and for fewer than two ranks.
StepGraph build_collective(CollectiveKind kind, Bytes bytes, DType dtype, const machine::Placement& placement);

/// The only op of such a graph; nullptr for any other graph.
const Collective* only_collective(const StepGraph& graph);

}  // namespace lockstep::step
