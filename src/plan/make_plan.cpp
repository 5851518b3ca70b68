#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/nearby.hpp"
#include "plan/plan.hpp"

namespace lockstep::plan {

namespace {

/// What tp, pp, cp and ep leave of the world: dp replica.
int data_parallel_ranks(const PlanRequest& request, int ranks) {
    if (ranks < 1)
        throw InputError(fmt::format("ranks={} is no world (it takes one at least); use ranks of 1 or more", ranks));
    if (ranks > max_ranks) throw InputError(fmt::format("ranks={} is too many; use at most {}", ranks, max_ranks));
    std::int64_t model_ranks = 1;
    for (const int size : {request.tp, request.pp, request.cp, request.ep, request.replica}) {
        if (size < 1) throw InputError(fmt::format("a parallel size of {} in the plan; use 1 or more", size));
        if (size > max_ranks)
            throw InputError(fmt::format("a parallel size of {} in the plan; use smaller ones", size));
    }
    for (const int size : {request.tp, request.pp, request.cp, request.ep}) {
        model_ranks *= size;
        if (model_ranks > max_ranks)
            throw InputError(fmt::format("tp pp cp ep is above {} ranks; use smaller ones", max_ranks));
    }
    if (ranks % model_ranks != 0)
        throw InputError(fmt::format(
            "ranks={} can't be split into replicas of {} (tp={} pp={} cp={} ep={}); use {} ranks", ranks, model_ranks,
            request.tp, request.pp, request.cp, request.ep, nearest_multiples(ranks, model_ranks, max_ranks)));
    return static_cast<int>(ranks / model_ranks);
}

/// Nodes that hold the ranks of one pipeline stage, each of them whole, or one that holds the stage.
int nodes_of_stage(const PlanRequest& request, const machine::Placement& placement) {
    const int per_node = placement.ranks_per_node;
    if (per_node < 1) throw InputError(fmt::format("{} ranks a node; use 1 or more", per_node));
    const int inner = request.tp * request.cp * request.ep;  // at most max_ranks: checked before
    const int stage = placement.ranks / request.pp;
    const bool is_inside = stage <= per_node && (placement.ranks <= per_node || per_node % stage == 0);
    if (is_inside) return 1;
    if (stage % per_node != 0)
        throw InputError(fmt::format(
            "shard_within_node does not fit (a pipeline stage has {} ranks, and a node {}); use a world of "
            "{} ranks, or give replica",
            stage, per_node, nearest_multiples(placement.ranks, std::int64_t{per_node} * request.pp, max_ranks)));
    if (per_node % inner != 0)
        throw InputError(
            fmt::format("shard_within_node does not fit (tp cp ep = {} ranks, and a node has {}); use a "
                        "product of {}, or give replica",
                        inner, per_node, either(divisors(per_node))));
    return stage / per_node;
}

int replica_of(const PlanRequest& request, const machine::Placement& placement, int left) {
    if (request.shard_within_node && request.replica > 1)
        throw InputError("replica and shard_within_node are both given; give one of them");
    if (request.shard_within_node) return nodes_of_stage(request, placement);
    if (left % request.replica != 0)
        throw InputError(fmt::format("replica={} doesn't divide the {} ranks that tp pp cp ep leave of {}; use {}",
                                     request.replica, left, placement.ranks, either(divisors(left))));
    return request.replica;
}

void check_batch_request(const BatchRequest& batch) {
    if (batch.accumulation && (*batch.accumulation < 1 || *batch.accumulation > max_accumulation))
        throw InputError(fmt::format("accumulation={} (a step takes from 1 to {} passes); use such a number",
                                     *batch.accumulation, max_accumulation));
    if (batch.per_rank < 0 || batch.global < 0 || (batch.per_rank == 0 && batch.global == 0))
        throw InputError("a batch of no samples; use batch_per_rank or global_batch of 1 or more");
    if (batch.per_rank > 0 && batch.global > 0)
        throw InputError("batch_per_rank and global_batch are both given; give one of them");
    if (std::max(batch.per_rank, batch.global) > max_global_batch)
        throw InputError(fmt::format("a batch above {} samples; use a smaller one", max_global_batch));
}

/// "dp=8", or "dp=2 replica=4 ep=2" where more than dp takes different samples.
std::string replicas_text(const Mesh& mesh) {
    std::string text = fmt::format("dp={}", mesh.dp);
    if (mesh.replica > 1) text += fmt::format(" x replica={}", mesh.replica);
    if (mesh.ep > 1) text += fmt::format(" x ep={}", mesh.ep);
    return text;
}

/// Samples of a replica in one step, which are a multiple of `parts` (accumulation or micro-batch, named `what`).
std::int64_t batch_of_replica(const BatchRequest& batch, const Mesh& mesh, std::int64_t parts, std::string_view what) {
    const std::int64_t replicas = mesh.replicas();
    if (batch.global > 0) {
        if (batch.global % replicas != 0 || batch.global / replicas % parts != 0)
            throw InputError(fmt::format("global_batch={} is not divisible by {} x {}={}; use {}", batch.global,
                                         replicas_text(mesh), what, parts,
                                         nearest_multiples(batch.global, replicas * parts, max_global_batch)));
        return batch.global / replicas;
    }
    if (batch.per_rank % parts != 0)
        throw InputError(fmt::format("batch_per_rank={} is not divisible by {}={}; use {}, or {} of {}", batch.per_rank,
                                     what, parts, nearest_multiples(batch.per_rank, parts, max_global_batch), what,
                                     nearest_divisors(parts, batch.per_rank)));
    if (batch.per_rank > max_global_batch / replicas)
        throw InputError(fmt::format("batch_per_rank={} on {} replicas is above {} samples a step; use at most {}",
                                     batch.per_rank, replicas, max_global_batch, max_global_batch / replicas));
    return batch.per_rank;
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

void split_batch(Plan& plan, const PlanRequest& request, const BatchRequest& batch) {
    if (request.microbatch > 0 && !batch.accumulation) {
        if (request.microbatch > max_global_batch / plan.mesh.replicas())
            throw InputError(fmt::format("microbatch={} is above {} samples a step; use a smaller one",
                                         request.microbatch, max_global_batch));
        const std::int64_t samples = batch_of_replica(batch, plan.mesh, request.microbatch, "microbatch");
        if (samples / request.microbatch > max_accumulation)
            throw InputError(fmt::format("microbatch={} makes {} passes of a step; use {} or more", request.microbatch,
                                         samples / request.microbatch, (samples - 1) / max_accumulation + 1));
        plan.micro_batch = request.microbatch;
        plan.accumulation = static_cast<int>(samples / request.microbatch);
        return;
    }
    plan.accumulation = batch.accumulation.value_or(1);
    plan.micro_batch = batch_of_replica(batch, plan.mesh, plan.accumulation, "accumulation") / plan.accumulation;
    check_microbatch(request, plan);
}

}  // namespace

Mesh make_mesh(const PlanRequest& request, const machine::Placement& placement) {
    const int left = data_parallel_ranks(request, placement.ranks);
    Mesh mesh{.tp = request.tp, .cp = request.cp, .ep = request.ep, .pp = request.pp};
    mesh.replica = replica_of(request, placement, left);
    mesh.dp = left / mesh.replica;
    return mesh;
}

Plan make_plan(const PlanRequest& request, const BatchRequest& batch, Optimizer optimizer,
               const machine::Placement& placement) {
    Plan plan;
    plan.mesh = make_mesh(request, placement);
    check_batch_request(batch);
    plan.split = request.split;
    split_batch(plan, request, batch);
    plan.bucket = request.bucket;
    plan.first_bucket = request.first_bucket;
    plan.overlap = request.overlap;
    plan.optimizer = optimizer;
    return plan;
}

}  // namespace lockstep::plan
