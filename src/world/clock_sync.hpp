// Offsets between the steady clocks of the ranks, by the Cristian method (round trip with the smallest delay).
#pragma once

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

/// Collective. Ranks on the host of rank 0 share its clock: offset 0.
ClockOffset measure_clock_offset(World& world, int round_trips = 32);

}  // namespace lockstep::world
