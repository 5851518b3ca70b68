#include <fmt/format.h>

#include <algorithm>

#include "plan/plan.hpp"

namespace lockstep::plan {

namespace {

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

int read_extent(config::Object& plan, std::string_view key) {
    return static_cast<int>(plan.integer_or(key, 1, 1, max_ranks));
}

Schedule read_schedule(config::Object& plan, int vpp) {
    const std::string otherwise = vpp > 1 ? "interleaved" : "1f1b";
    const std::string text = plan.choice_or("schedule", {"1f1b", "gpipe", "interleaved"}, otherwise);
    return text == "gpipe"         ? Schedule::gpipe
           : text == "interleaved" ? Schedule::interleaved
                                   : Schedule::one_forward_one_backward;
}

std::vector<int> read_stage_blocks(config::Object& plan) {
    std::vector<int> blocks;
    if (!plan.has("stage_blocks")) return blocks;
    const auto errors_before = plan.diagnostics().count();
    const auto values = plan.integers("stage_blocks");
    if (plan.diagnostics().count() != errors_before) return blocks;
    for (const std::int64_t count : values) {
        if (count < 0 || count > max_blocks) {
            plan.error("stage_blocks", fmt::format("{} blocks in a chunk; use counts from 0 to {}", count, max_blocks));
            return {};
        }
        blocks.push_back(static_cast<int>(count));
    }
    if (blocks.empty()) plan.error("stage_blocks", "an empty list; leave it out for equal chunks");
    return blocks;
}

Recompute read_recompute(config::Object& plan) {
    const std::string text = plan.choice_or("recompute", {"none", "selective", "full"}, "none");
    return text == "full" ? Recompute::full : text == "selective" ? Recompute::selective : Recompute::none;
}

Split read_split(config::Object& plan) {
    Split split;
    split.vpp = read_extent(plan, "vpp");
    split.schedule = read_schedule(plan, split.vpp);
    split.stage_blocks = read_stage_blocks(plan);
    split.sequence_parallel = plan.flag_or("sequence_parallel", split.sequence_parallel);
    split.async_tp = plan.flag_or("async_tp", split.async_tp);
    split.context = plan.choice_or("context", {"ring", "all-to-all"}, "ring") == "ring" ? ContextAlgorithm::ring
                                                                                        : ContextAlgorithm::all_to_all;
    split.recompute = read_recompute(plan);
    split.zero = static_cast<int>(plan.integer_or("zero", split.zero, 0, 3));
    split.zero_keep = plan.flag_or("zero_keep", split.zero_keep);
    split.prefetch = static_cast<int>(plan.integer_or("prefetch", split.prefetch, 0, max_prefetch));
    split.reshard_after_forward = plan.flag_or("reshard_after_forward", split.reshard_after_forward);
    split.overlap_parameter_gather = plan.flag_or("overlap_parameter_gather", split.overlap_parameter_gather);
    return split;
}

void check_pipeline(config::Object& plan, const PlanRequest& request) {
    const Split& split = request.split;
    if (split.vpp > 1 && request.pp == 1)
        plan.error("vpp", fmt::format("{} chunks a stage want a pipeline; use pp of 2 or more, or vpp: 1", split.vpp));
    else if (split.vpp > 1 && split.schedule != Schedule::interleaved)
        plan.error("schedule", fmt::format("{} has one chunk a stage, and vpp is {}; use schedule: interleaved, or "
                                           "vpp: 1",
                                           to_string(split.schedule), split.vpp));
    if (split.vpp == 1 && split.schedule == Schedule::interleaved)
        plan.error("schedule", "interleaved has several chunks a stage; use vpp of 2 or more, or schedule: 1f1b");
    const std::int64_t chunks = std::int64_t{request.pp} * split.vpp;
    if (!split.stage_blocks.empty() && static_cast<std::int64_t>(split.stage_blocks.size()) != chunks)
        plan.error("stage_blocks", fmt::format("{} counts for pp {} x vpp {} = {} chunks; give one for each",
                                               split.stage_blocks.size(), request.pp, split.vpp, chunks));
}

void check_sequence(config::Object& plan, const PlanRequest& request) {
    if (request.split.sequence_parallel && request.tp == 1)
        plan.error("sequence_parallel",
                   "splits what tp leaves whole, and tp is 1; use tp of 2 or more, or "
                   "sequence_parallel: false");
    if (request.split.async_tp && !request.split.sequence_parallel)
        plan.error("async_tp",
                   "divides the gathers of sequence parallelism; add sequence_parallel: true, or use "
                   "async_tp: false");
    if (request.split.context != ContextAlgorithm::ring && request.cp == 1)
        plan.error("context",
                   "all-to-all is between the ranks of cp, and cp is 1; use cp of 2 or more, or context: "
                   "ring");
}

/// Settings of ZeRO say nothing where the state they are about is not shared: only their defaults are let through.
void check_sharding(config::Object& plan, const PlanRequest& request) {
    const Split& split = request.split;
    const Split defaults;
    if (split.zero_keep && split.zero < 2)
        plan.error("zero_keep", fmt::format("is about gradients and parameters, which zero {} doesn't share; use zero: "
                                            "2 or 3, or zero_keep: false",
                                            split.zero));
    if (split.prefetch != defaults.prefetch && split.zero != 3)
        plan.error("prefetch", fmt::format("is about parameters, which zero {} doesn't share; use zero: 3, or "
                                           "prefetch: {}",
                                           split.zero, defaults.prefetch));
    if (!split.reshard_after_forward && split.zero != 3)
        plan.error("reshard_after_forward", fmt::format("is about parameters, which zero {} doesn't share; use zero: "
                                                        "3, or reshard_after_forward: true",
                                                        split.zero));
    if (!split.overlap_parameter_gather && split.zero != 1 && split.zero != 2)
        plan.error("overlap_parameter_gather",
                   fmt::format("is about the gather after the optimizer, which zero {} doesn't have; use zero: 1 or 2, "
                               "or overlap_parameter_gather: true",
                               split.zero));
    if (request.replica > 1 && request.shard_within_node)
        plan.error("shard_within_node", "is given beside replica; keep one of them");
    if (split.zero > 0) return;
    if (request.replica > 1)
        plan.error("replica",
                   "counts copies of sharded state, and zero 0 shards nothing; use zero of 1 to 3, or "
                   "replica: 1");
    if (request.shard_within_node)
        plan.error("shard_within_node",
                   "is about sharded state, and zero 0 shards nothing; use zero of 1 to 3, or "
                   "shard_within_node: false");
}

}  // namespace

PlanRequest read_plan(const config::Node& node, const Framework& framework, config::Diagnostics& diagnostics) {
    config::Object plan(node, "plan", diagnostics);
    const auto errors_before = diagnostics.count();
    PlanRequest request;
    request.bucket = read_bucket(plan, "bucket", framework.bucket);
    // A bucket below the framework's first one was meant to be the largest of all.
    request.first_bucket = read_bucket(plan, "first_bucket", std::min(framework.first_bucket, request.bucket));
    request.overlap = plan.flag_or("overlap", framework.overlap);
    request.tp = read_extent(plan, "tp");
    request.pp = read_extent(plan, "pp");
    request.cp = read_extent(plan, "cp");
    request.ep = read_extent(plan, "ep");
    request.replica = read_extent(plan, "replica");
    request.shard_within_node = plan.flag_or("shard_within_node", false);
    request.split = read_split(plan);
    if (plan.has("microbatch")) request.microbatch = plan.integer_or("microbatch", 1, 1, max_global_batch);
    if (diagnostics.count() == errors_before) {
        check_pipeline(plan, request);
        check_sequence(plan, request);
        check_sharding(plan, request);
    }
    plan.finish();
    return request;
}

}  // namespace lockstep::plan
