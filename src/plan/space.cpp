#include "plan/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "plan/nearby.hpp"
#include "plan/stages.hpp"

namespace lockstep::plan {

namespace {

constexpr std::size_t kept_refusals = 8;

std::int64_t experts_of(const model::Model& model) {
    for (const model::Layer& layer : model.layers)
        if (const auto* experts = std::get_if<model::GroupedLinear>(&layer.kind)) return experts->experts;
    return 1;
}

std::vector<int> divisors_to(std::int64_t n, std::int64_t most) {
    std::vector<int> result;
    for (const std::int64_t d : divisors(n))
        if (d <= most) result.push_back(static_cast<int>(d));
    return result;
}

/// The request of one combination: what the base says beyond the axes, as far as it means anything there.
PlanRequest request_of(const PlanRequest& base, int tp, int pp, int vpp, int cp, int ep, int zero,
                       bool sequence_parallel) {
    const Split defaults;
    PlanRequest request = base;
    request.tp = tp;
    request.pp = pp;
    request.cp = cp;
    request.ep = ep;
    Split& split = request.split;
    split.vpp = vpp;
    if (vpp > 1 || split.schedule == Schedule::interleaved)
        split.schedule = vpp > 1 ? Schedule::interleaved : Schedule::one_forward_one_backward;
    if (static_cast<int>(split.stage_blocks.size()) != pp * vpp) split.stage_blocks.clear();
    split.sequence_parallel = sequence_parallel;
    split.async_tp = split.async_tp && sequence_parallel;
    if (cp == 1) split.context = defaults.context;
    split.zero = zero;
    if (zero < 2) split.zero_keep = defaults.zero_keep;
    if (zero != 3) {
        split.prefetch = defaults.prefetch;
        split.reshard_after_forward = defaults.reshard_after_forward;
    }
    if (zero != 1 && zero != 2) split.overlap_parameter_gather = defaults.overlap_parameter_gather;
    if (zero == 0) {
        request.replica = 1;
        request.shard_within_node = false;
    }
    return request;
}

class SpaceMaker {
public:
    SpaceMaker(const BatchRequest& batch, Optimizer optimizer, const model::Model& model,
               const machine::Placement& placement)
        : batch_(batch), optimizer_(optimizer), model_(model), placement_(placement) {
        batch_.accumulation.reset();
    }

    void add(PlanRequest request) {
        const auto factor = std::int64_t{request.tp} * request.pp * request.cp * request.ep;
        if (placement_.ranks % factor != 0)
            return refuse(fmt::format("tp x pp x cp x ep = {} doesn't divide {} ranks", factor, placement_.ranks));
        Plan plan;
        try {
            plan = make_plan(request, batch_, optimizer_, placement_);
        } catch (const InputError& failure) { return refuse(failure.what()); }
        // Without ranks to share with, each stage of ZeRO is the same plan.
        const int sharing = plan.mesh.cp * plan.mesh.ep * plan.mesh.dp;
        if (sharing == 1 && plan.split.zero > 0) return;
        if (plan.split.schedule == Schedule::interleaved && plan.accumulation % plan.mesh.pp != 0)
            return refuse(fmt::format("{} passes are no multiple of pp={}", plan.accumulation, plan.mesh.pp));
        if (const auto& why = why_not(plan); !why.empty()) return refuse(why);
        space_.candidates.push_back({std::move(request), std::move(plan)});
    }
    void count() { ++space_.combinations; }
    Space take() { return std::move(space_); }

private:
    void refuse(const std::string& why) {
        auto& known = space_.refusals;
        if (known.size() < kept_refusals && std::ranges::find(known, why) == known.end()) known.push_back(why);
    }
    /// What the model refuses of a plan depends on neither its batch nor, beyond their product, its passes.
    const std::string& why_not(const Plan& plan) {
        const Split& s = plan.split;
        const auto [known, is_new] =
            refusals_.try_emplace(std::tuple(plan.mesh.tp, plan.mesh.pp, s.vpp, plan.mesh.cp, plan.mesh.ep, s.zero,
                                             s.sequence_parallel, static_cast<int>(s.recompute)));
        if (is_new)
            if (const auto reasons = plan_refusals(plan, model_); !reasons.empty()) known->second = reasons.front();
        return known->second;
    }

    BatchRequest batch_;
    Optimizer optimizer_;
    const model::Model& model_;
    machine::Placement placement_;
    Space space_;
    std::map<std::tuple<int, int, int, int, int, int, bool, int>, std::string> refusals_;
};

/// The chunks of a stage that are tried where the list leaves them open: 1 and what divides a stage's blocks.
std::vector<int> chunks_of_stage(const std::vector<int>& list, int blocks, int pp) {
    if (!list.empty()) return list;
    if (pp == 1 || blocks == 0 || blocks % pp != 0) return {1};
    return divisors_to(blocks / pp, blocks / pp);
}

}  // namespace

SpaceRequest with_defaults(SpaceRequest space, const model::Model& model, int ranks) {
    if (space.tp.empty()) space.tp = divisors_to(ranks, ranks);
    if (space.pp.empty()) space.pp = divisors_to(ranks, std::max(1, block_count(model)));
    const std::int64_t tokens = model.tokens_per_sample();
    if (space.cp.empty()) space.cp = divisors_to(ranks, std::max<std::int64_t>(1, tokens / least_tokens_of_cp));
    if (space.ep.empty()) {
        const std::int64_t experts = experts_of(model);
        for (const int d : divisors_to(ranks, experts))
            if (experts % d == 0) space.ep.push_back(d);
    }
    if (space.zero.empty()) space.zero = {0, 1, 2, 3};
    if (space.microbatch.empty())
        for (std::int64_t m = 1; m <= largest_default_micro_batch; ++m) space.microbatch.push_back(m);
    if (space.recompute.empty()) {
        space.recompute = {Recompute::none};
        if (block_count(model) > 0 && tokens > 0)
            space.recompute = {Recompute::none, Recompute::selective, Recompute::full};
    }
    if (space.sequence_parallel.empty()) space.sequence_parallel = {false, true};
    return space;
}

Space make_space(const SpaceRequest& lists, const PlanRequest& base, BatchRequest batch, Optimizer optimizer,
                 const model::Model& model, const machine::Placement& placement) {
    SpaceMaker maker(batch, optimizer, model, placement);
    const int blocks = block_count(model);
    for (const int tp : lists.tp)
        for (const int pp : lists.pp)
            for (const int vpp : chunks_of_stage(lists.vpp, blocks, pp))
                for (const int cp : lists.cp)
                    for (const int ep : lists.ep)
                        for (const int zero : lists.zero)
                            for (const bool sequence_parallel : lists.sequence_parallel) {
                                if (sequence_parallel && tp == 1 && lists.sequence_parallel.size() > 1) continue;
                                if (vpp > 1 && pp == 1 && lists.vpp.size() > 1) continue;
                                PlanRequest request =
                                    request_of(base, tp, pp, vpp, cp, ep, zero, sequence_parallel && tp > 1);
                                for (const Recompute recompute : lists.recompute)
                                    for (const std::int64_t microbatch : lists.microbatch) {
                                        request.split.recompute = recompute;
                                        request.microbatch = microbatch;
                                        maker.count();
                                        maker.add(request);
                                    }
                            }
    return maker.take();
}

std::string plan_text(const PlanRequest& request) {
    const Split& s = request.split;
    const Split defaults;
    std::vector<std::string> parts;
    const auto number = [&](std::string_view key, std::int64_t value, std::int64_t otherwise) {
        if (value != otherwise) parts.push_back(fmt::format("{}: {}", key, value));
    };
    const auto flag = [&](std::string_view key, bool value, bool otherwise) {
        if (value != otherwise) parts.push_back(fmt::format("{}: {}", key, value));
    };
    number("tp", request.tp, 1);
    number("pp", request.pp, 1);
    number("vpp", s.vpp, 1);
    number("cp", request.cp, 1);
    number("ep", request.ep, 1);
    flag("sequence_parallel", s.sequence_parallel, false);
    flag("async_tp", s.async_tp, false);
    number("zero", s.zero, 0);
    number("replica", request.replica, 1);
    flag("shard_within_node", request.shard_within_node, false);
    number("microbatch", request.microbatch, 0);
    if (s.recompute != defaults.recompute) parts.push_back(fmt::format("recompute: {}", to_string(s.recompute)));
    if (s.schedule == Schedule::gpipe) parts.push_back("schedule: gpipe");
    if (!s.stage_blocks.empty()) parts.push_back(fmt::format("stage_blocks: [{}]", fmt::join(s.stage_blocks, ", ")));
    if (s.context != defaults.context) parts.push_back(fmt::format("context: {}", to_string(s.context)));
    flag("zero_keep", s.zero_keep, defaults.zero_keep);
    number("prefetch", s.prefetch, defaults.prefetch);
    flag("reshard_after_forward", s.reshard_after_forward, defaults.reshard_after_forward);
    flag("overlap_parameter_gather", s.overlap_parameter_gather, defaults.overlap_parameter_gather);
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace lockstep::plan
