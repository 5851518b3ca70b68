#include <fmt/format.h>

#include <algorithm>

#include "plan/plan.hpp"

namespace lockstep::plan {

namespace {

constexpr std::string_view not_yet = "this version runs data parallelism only";

/// An extent that this version has at `only`; reports anything else with the value to use.
int read_extent(config::Object& plan, std::string_view key, int only) {
    const auto errors_before = plan.diagnostics().count();
    const auto value = plan.integer_or(key, only, only, max_ranks);
    const bool is_a_number = plan.diagnostics().count() == errors_before;
    if (is_a_number && value != only) plan.error(key, fmt::format("{} ({}); use {}: {}", value, not_yet, key, only));
    return only;
}

/// The size, or `fallback` when it is absent or wrong.
Bytes read_bucket(config::Object& plan, std::string_view key, Bytes fallback) {
    const auto errors_before = plan.diagnostics().count();
    if (!plan.has(key)) return fallback;
    const Bytes size = plan.bytes_or(key, fallback);
    if (plan.diagnostics().count() != errors_before) return fallback;
    if (size >= Bytes{1} && size <= max_bucket) return size;
    plan.error(key, bucket_limits());
    return fallback;
}

void refuse_what_comes_later(config::Object& plan) {
    // The schedules are one and the same program without pipeline stages, so any of them is right here.
    plan.choice_or("schedule", {"1f1b", "gpipe", "interleaved"}, "1f1b");
    read_extent(plan, "vpp", 1);
    const std::string recompute = plan.choice_or("recompute", {"none", "selective", "full"}, "none");
    if (recompute != "none") plan.error("recompute", fmt::format("'{}' ({}); use recompute: none", recompute, not_yet));
    if (plan.flag_or("sequence_parallel", false))
        plan.error("sequence_parallel", fmt::format("true ({}); use sequence_parallel: false", not_yet));
}

}  // namespace

PlanRequest read_plan(const config::Node& node, const Framework& framework, config::Diagnostics& diagnostics) {
    config::Object plan(node, "plan", diagnostics);
    PlanRequest request;
    request.bucket = read_bucket(plan, "bucket", framework.bucket);
    // A bucket below the framework's first one was meant to be the largest of all.
    request.first_bucket = read_bucket(plan, "first_bucket", std::min(framework.first_bucket, request.bucket));
    request.overlap = plan.flag_or("overlap", framework.overlap);
    request.tp = read_extent(plan, "tp", 1);
    request.pp = read_extent(plan, "pp", 1);
    request.cp = read_extent(plan, "cp", 1);
    request.ep = read_extent(plan, "ep", 1);
    request.zero = read_extent(plan, "zero", 0);
    if (plan.has("microbatch")) request.microbatch = plan.integer_or("microbatch", 1, 1, max_global_batch);
    refuse_what_comes_later(plan);
    plan.finish();
    return request;
}

}  // namespace lockstep::plan
