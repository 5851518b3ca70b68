// One plan by the full simulator: every op of every stage, in steps of few passes where it has many.
#pragma once

#include "analysis/findings.hpp"
#include "plan/plan.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// Simulates two steps and analyses the second; memory is measured. Throws InputError for what can't be built or would
/// hang.
analysis::RunFindings simulate_plan(const Subject& subject, const plan::Plan& plan);

}  // namespace lockstep::search
