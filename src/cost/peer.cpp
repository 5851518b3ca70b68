#include "cost/peer.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::cost {

int peer_rank(const plan::Mesh& mesh, int rank, const step::Peer& peer) {
    plan::Coordinates at = mesh.coordinates(rank);
    const int extent = mesh.extent(peer.axis);
    int place = at[peer.axis] + peer.offset;
    if (peer.wraps) place = ((place % extent) + extent) % extent;
    if (place < 0 || place >= extent)
        throw LogicError(fmt::format("rank {} has no peer at {} {:+}", rank, plan::to_string(peer.axis), peer.offset));
    at[peer.axis] = place;
    return mesh.rank(at);
}

}  // namespace lockstep::cost
