// The first look at every plan of a space: floors, then estimates.
#pragma once

#include <vector>

#include "plan/space.hpp"
#include "search/bounds.hpp"
#include "search/estimate.hpp"
#include "search/search.hpp"

namespace lockstep::search {

struct Screened {
    enum class Fate { not_reached, above_memory, above_bound, estimated } fate = Fate::not_reached;
    Seconds floor;    ///< of its time
    Bytes memory;     ///< the estimate where there is one, else the floor
    TimeParts parts;  ///< of what was estimated
};

/// By candidate. Goes through them in the order of their floors, in batches: what is known of earlier batches discards
/// of later ones, whatever the threads.
std::vector<Screened> screen(const plan::Space& space, const Bounds& bounds, Estimator& estimator,
                             const SearchOptions& options);

/// Floors alone: what is above the limit by them, and the floor of the time.
std::vector<Screened> screen_by_floors(const plan::Space& space, const Bounds& bounds, Bytes limit);

}  // namespace lockstep::search
