#include "analysis/extrapolate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::analysis {

namespace {

/// Never below nothing: a part that shrinks as the passes grow (a wait for the host) is gone at some length.
Seconds further(const plan::ShortenedPasses& passes, Seconds fewer, Seconds more) {
    return std::max(Seconds{}, passes.extrapolated(fewer, more));
}

StepTime further(const plan::ShortenedPasses& passes, const StepTime& fewer, const StepTime& more) {
    StepTime time;
    for (const auto part :
         {&StepTime::median, &StepTime::p95, &StepTime::p99, &StepTime::interval80_low, &StepTime::interval80_high})
        time.*part = further(passes, fewer.*part, more.*part);
    return time;
}

Breakdown further(const plan::ShortenedPasses& passes, const Breakdown& fewer, const Breakdown& more) {
    Breakdown result;
    for (const auto part : breakdown_parts) result.*part = further(passes, fewer.*part, more.*part);
    return result;
}

/// Communication beside which nothing is computed; with `share` of all communication overlapped, that is 1 - share.
Seconds exposed(const RunFindings& findings) {
    return findings.breakdown.exposed_communication + findings.breakdown.wait + findings.breakdown.bubble;
}
Seconds communication(const RunFindings& findings) {
    return findings.overlapped_share < 1 ? exposed(findings) / (1 - findings.overlapped_share) : Seconds{};
}

double overlapped_share(const plan::ShortenedPasses& passes, const RunFindings& fewer, const RunFindings& more) {
    const Seconds all = further(passes, communication(fewer), communication(more));
    const Seconds open = further(passes, exposed(fewer), exposed(more));
    return all > Seconds{} ? std::clamp(1 - open / all, 0.0, 1.0) : more.overlapped_share;
}

}  // namespace

RunFindings extrapolate_passes(const RunFindings& fewer, const RunFindings& more, const plan::ShortenedPasses& passes) {
    RunFindings result = more;
    result.step_time = further(passes, fewer.step_time, more.step_time);
    result.breakdown = further(passes, fewer.breakdown, more.breakdown);
    result.breakdown_p95 = further(passes, fewer.breakdown_p95, more.breakdown_p95);
    result.overlapped_share = overlapped_share(passes, fewer, more);
    result.global_batch = more.global_batch / passes.more * passes.all;
    result.throughput = static_cast<double>(result.global_batch) / result.step_time.median.value;
    const double rate = result.throughput / more.throughput;
    if (more.mfu) result.mfu = *more.mfu * rate;
    if (more.hfu) result.hfu = *more.hfu * rate;
    result.passes = fmt::format("{} passes, from steps of {} and {}", passes.all, passes.fewer, passes.more);
    return result;
}

}  // namespace lockstep::analysis
