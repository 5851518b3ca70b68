// Offsets between the steady clocks of the ranks, by the Cristian method (round trip with the smallest delay).
#pragma once

#include <functional>

#include "base/time.hpp"
#include "world/world.hpp"

namespace lockstep::world {

/// Now on the steady clock of this host, from an arbitrary origin.
Nanoseconds steady_now();
/// UTC now, nanoseconds since 1970.
Nanoseconds utc_now();

struct ClockOffset {
    Nanoseconds offset;       ///< add to a local steady time to get rank 0's
    Nanoseconds uncertainty;  ///< half of the smallest round trip; 0 on ranks that share a host with rank 0
};

/// Collective. Ranks that run under the same kernel as rank 0 share its steady clock: offset 0.
ClockOffset measure_clock_offset(World& world, int round_trips = 32);

/// Offset of `clock` between this rank and rank 0, always by messages: a request sent at t0 is answered with rank 0's
/// time s and comes back at t1, so s - (t0 + t1) / 2 is the offset within (t1 - t0) / 2 [Cristian 1989]; of
/// `round_trips` the shortest is kept. Collective.
ClockOffset estimate_clock_offset(World& world, int round_trips, const std::function<Nanoseconds()>& clock);

}  // namespace lockstep::world
