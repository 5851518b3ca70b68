// A space looked at axis by axis: what is lost with each value.
#pragma once

#include <vector>

#include "analysis/search_findings.hpp"
#include "plan/space.hpp"
#include "search/finals.hpp"
#include "search/screening.hpp"

namespace lockstep::search {

/// For every axis with several values: the best plan with each value (simulated where it was, else estimated), and why
/// it is slower than the best of all; or what memory the smallest needs.
std::vector<analysis::AxisValue> best_by_axis(const Subject& subject, const plan::Space& space,
                                              const std::vector<Screened>& screened, const Finals& finals,
                                              std::size_t best, Bytes limit);

/// "tp: [1, 2, 4]" for each axis, of the plans in the space.
std::vector<std::string> describe_axes(const plan::Space& space);

}  // namespace lockstep::search
