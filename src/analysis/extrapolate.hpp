// The findings of a step of many passes, from those of two steps of fewer.
#pragma once

#include "analysis/findings.hpp"
#include "plan/shortened.hpp"

namespace lockstep::analysis {

/// Step time (median, p95, p99, interval), every part of the breakdown are linear in the passes; the
/// global batch and flops are proportional to them, and throughput, MFU and HFU follow. All else, memory too, is as
/// with `more`. RunFindings::passes says what was done: "1536 passes, from steps of 16 and 24". The findings must be of
/// one plan that differs in its passes alone.
RunFindings extrapolate_passes(const RunFindings& fewer, const RunFindings& more, const plan::ShortenedPasses& passes);

}  // namespace lockstep::analysis
