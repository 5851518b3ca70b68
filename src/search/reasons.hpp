// Why a plan is slower than another, or doesn't fit.
#pragma once

#include "analysis/search_findings.hpp"
#include "plan/plan.hpp"
#include "search/estimate.hpp"

namespace lockstep::search {

/// The parts of a simulated step, as an estimate has them: recomputation counts as compute, and communication of data
/// parallelism as communication.
TimeParts parts_of(const analysis::Breakdown& breakdown);

/// A plan with the parts of its step time.
struct Timed {
    const plan::Plan& plan;
    TimeParts parts;
};

/// The part that grew most; Kind::none when the plan is no slower.
analysis::Reason why_slower(const Timed& slower, const Timed& best, const machine::Placement& placement);

/// Its memory.
analysis::Reason why_too_large(Bytes needs, Bytes limit);

}  // namespace lockstep::search
