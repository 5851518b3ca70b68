// Which rank a mesh-relative peer is.
#pragma once

#include "step/graph.hpp"

namespace lockstep::cost {

/// The rank at `peer` of `rank`. Throws LogicError when it lies outside the mesh and doesn't wrap (step::check refuses
/// such graphs).
int peer_rank(const plan::Mesh& mesh, int rank, const step::Peer& peer);

}  // namespace lockstep::cost
