#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::plan {

std::string_view to_string(Optimizer optimizer) {
    switch (optimizer) {
        case Optimizer::sgd_momentum: return "sgd-momentum";
        case Optimizer::adam: return "adam";
    }
    throw LogicError("an optimizer without a name");
}

namespace {

/// "64" or "48 or 64": the multiples of `step` around `value`, from `step` up to the limit of a batch.
std::string nearest_multiples(std::int64_t value, std::int64_t step) {
    const std::int64_t below = value / step * step;
    const std::int64_t above = below + step;
    if (below == 0) return fmt::format("{}", above);
    if (above > max_global_batch) return fmt::format("{}", below);
    return fmt::format("{} or {}", below, above);
}

int data_parallel_size(const PlanRequest& request, int ranks) {
    if (ranks < 1)
        throw InputError(fmt::format("ranks={} is no world (it takes one at least); use ranks of 1 or more", ranks));
    if (ranks > max_ranks) throw InputError(fmt::format("ranks={} is too many; use at most {}", ranks, max_ranks));
    std::int64_t model_ranks = 1;  // of one replica
    for (const int size : {request.tp, request.pp, request.cp, request.ep}) {
        if (size < 1) throw InputError(fmt::format("a parallel size of {} in the plan; use 1 or more", size));
        model_ranks *= size;
        if (model_ranks > max_ranks)
            throw InputError(fmt::format("tp pp cp ep is above {} ranks; use smaller ones", max_ranks));
    }
    if (ranks % model_ranks != 0)
        throw InputError(fmt::format(
            "ranks={} can't be split into replicas of {} (tp={} pp={} cp={} ep={}); use {} ranks", ranks, model_ranks,
            request.tp, request.pp, request.cp, request.ep, nearest_multiples(ranks, model_ranks)));
    return static_cast<int>(ranks / model_ranks);
}

void check_batch_request(const BatchRequest& batch) {
    if (batch.accumulation < 1)
        throw InputError(
            fmt::format("accumulation={} (a step takes one pass at least); use 1 or more", batch.accumulation));
    if (batch.per_rank < 0 || batch.global < 0 || (batch.per_rank == 0 && batch.global == 0))
        throw InputError("a batch of no samples; use batch_per_rank or global_batch of 1 or more");
    if (batch.per_rank > 0 && batch.global > 0)
        throw InputError("batch_per_rank and global_batch are both given; give one of them");
    if (std::max(batch.per_rank, batch.global) > max_global_batch)
        throw InputError(fmt::format("a batch above {} samples; use a smaller one", max_global_batch));
}

/// Samples of one replica and pass for a batch per replica.
std::int64_t weak_micro_batch(const BatchRequest& batch, int dp) {
    if (batch.per_rank % batch.accumulation != 0)
        throw InputError(fmt::format("batch_per_rank={} is not divisible by accumulation={}; use {}", batch.per_rank,
                                     batch.accumulation, nearest_multiples(batch.per_rank, batch.accumulation)));
    if (batch.per_rank > max_global_batch / dp)
        throw InputError(fmt::format("batch_per_rank={} on {} replicas is above {} samples a step; use at most {}",
                                     batch.per_rank, dp, max_global_batch, max_global_batch / dp));
    return batch.per_rank / batch.accumulation;
}

/// The same for a global batch.
std::int64_t strong_micro_batch(const BatchRequest& batch, int dp) {
    const std::int64_t parts = std::int64_t{dp} * batch.accumulation;
    if (batch.global % parts != 0)
        throw InputError(fmt::format("global_batch={} is not divisible by dp={} x accumulation={}; use {}",
                                     batch.global, dp, batch.accumulation, nearest_multiples(batch.global, parts)));
    return batch.global / parts;
}

void check_microbatch(const PlanRequest& request, const Plan& plan) {
    if (request.microbatch == 0 || request.microbatch == plan.micro_batch) return;
    const std::int64_t replica = plan.micro_batch * plan.accumulation;
    std::string hint = fmt::format("use microbatch={}", plan.micro_batch);
    if (replica % request.microbatch == 0) hint += fmt::format(" or accumulation={}", replica / request.microbatch);
    throw InputError(
        fmt::format("microbatch={} does not fit (a replica takes {} samples a step in {} passes of {}); {}",
                    request.microbatch, replica, plan.accumulation, plan.micro_batch, hint));
}

}  // namespace

Plan make_plan(const PlanRequest& request, const BatchRequest& batch, Optimizer optimizer, int ranks) {
    const int dp = data_parallel_size(request, ranks);
    check_batch_request(batch);
    Plan plan;
    plan.mesh = Mesh{.tp = request.tp, .cp = request.cp, .ep = request.ep, .dp = dp, .pp = request.pp};
    plan.accumulation = batch.accumulation;
    plan.micro_batch = batch.global > 0 ? strong_micro_batch(batch, dp) : weak_micro_batch(batch, dp);
    check_microbatch(request, plan);
    plan.bucket = request.bucket;
    plan.first_bucket = request.first_bucket;
    plan.overlap = request.overlap;
    plan.optimizer = optimizer;
    return plan;
}

}  // namespace lockstep::plan
