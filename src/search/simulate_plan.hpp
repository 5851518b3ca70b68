// One plan by the full simulator: every op of every stage, in steps of few passes where it has many.
#pragma once

#include "analysis/findings.hpp"
#include "plan/plan.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// shortened: a step of many passes is told by two of fewer (drive::shorten).
enum class Length { shortened, whole };

/// Simulates two steps and analyses the second; memory is measured. Throws InputError for what can't be built or would
/// hang.
analysis::RunFindings simulate_plan(const Subject& subject, const plan::Plan& plan, Length length = Length::shortened);

}  // namespace lockstep::search
