#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/check_parts.hpp"
#include "plan/nearby.hpp"
#include "plan/stages.hpp"
#include "plan/tensor_split.hpp"

namespace lockstep::plan {

namespace {

/// What ZeRO 3 gathers at once: a block, or all that is in none (-1). Elements of one tp rank; without experts that ep
/// spreads, which are more and shared by fewer.
struct Unit {
    std::string first_layer;
    std::int64_t trained = 0, frozen = 0;
    std::int64_t smallest() const { return trained == 0 ? frozen : frozen == 0 ? trained : std::min(trained, frozen); }
};

std::map<int, Unit> units_of(const Plan& plan, const model::Model& model) {
    std::map<int, Unit> units;
    std::set<model::ParameterId> seen;
    const std::vector<LayerSplit> splits = split_layers(model, plan.mesh.tp, plan.split.sequence_parallel);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const model::Layer& layer = model.layers[i];
        for (std::size_t k = 0; k < layer.parameters.size(); ++k) {
            if (!seen.insert(layer.parameters[k]).second) continue;
            const model::Parameter& parameter = model.parameters[layer.parameters[k].index()];
            const WeightSplit split = splits[i].weights;
            const bool is_split = split != WeightSplit::whole && (k == 0 || split == WeightSplit::columns);
            if (std::holds_alternative<model::GroupedLinear>(layer.kind) && plan.mesh.ep > 1) continue;
            Unit& unit = units[layer.repeat_group];
            if (unit.first_layer.empty()) unit.first_layer = layer.name;
            (parameter.trainable ? unit.trained : unit.frozen) += parameter.elements() / (is_split ? plan.mesh.tp : 1);
        }
    }
    return units;
}

void check_zero(const Plan& plan, const model::Model& model, Refusals& refusals) {
    if (plan.split.zero < 0 || plan.split.zero > 3)
        refusals.push_back(fmt::format("zero={} is no stage; use zero=0, 1, 2 or 3", plan.split.zero));
    const std::int64_t ranks = std::int64_t{plan.mesh.cp} * plan.mesh.ep * plan.mesh.dp;
    if (plan.split.zero != 3 || ranks == 1) return;
    std::string frozen;
    int frozen_units = 0;
    for (const auto& [group, unit] : units_of(plan, model)) {
        const std::string what =
            group < 0 ? "the layers in no block" : fmt::format("the block of '{}'", unit.first_layer);
        if (unit.smallest() < ranks)
            refusals.push_back(
                fmt::format("zero=3 spreads {} parameters of {} over {} ranks, so that some hold none; use "
                            "zero=0, 1 or 2, or replica so that at most {} ranks share",
                            unit.smallest(), what, ranks, unit.smallest()));
        if (group < 0 || unit.trained > 0) continue;
        if (frozen_units++ == 0) frozen = what;
    }
    if (frozen_units > 0)
        refusals.push_back(
            fmt::format("zero=3 leaves the gradient and optimizer shards of {}{} empty (all its parameters "
                        "are frozen); use zero=0, 1 or 2, or train a parameter of each block",
                        frozen, frozen_units == 1 ? "" : fmt::format(" and {} more", frozen_units - 1)));
}

void check_recompute(const Plan& plan, const model::Model& model, Refusals& refusals) {
    const auto is_attention = [](const model::Layer& layer) {
        return std::holds_alternative<model::Attention>(layer.kind);
    };
    if (plan.split.recompute == Recompute::selective && std::ranges::none_of(model.layers, is_attention))
        refusals.emplace_back(
            "recompute: selective computes the core of attention again, and this model has none; use "
            "recompute: none or full");
    if (plan.split.recompute == Recompute::full && block_count(model) == 0)
        refusals.emplace_back("recompute: full computes blocks again, and this model has none; use recompute: none");
}

void check_experts(const Plan& plan, const model::Model& model, Refusals& refusals) {
    const int ep = plan.mesh.ep;
    if (ep == 1) return;
    if (!model.has_experts()) {
        refusals.push_back(fmt::format("ep={} spreads experts, and this model has none; use ep=1", ep));
        return;
    }
    std::set<std::int64_t> seen;
    for (const model::Layer& layer : model.layers) {
        const auto* dispatch = std::get_if<model::Dispatch>(&layer.kind);
        if (dispatch == nullptr || dispatch->experts % ep == 0 || !seen.insert(dispatch->experts).second) continue;
        refusals.push_back(fmt::format("ep={} doesn't divide {} experts; use ep={}", ep, dispatch->experts,
                                       either(divisors(dispatch->experts))));
    }
    if (plan.split.zero > 0 && plan.mesh.cp * plan.mesh.dp == 1)
        refusals.push_back(
            fmt::format("zero={} with ep={} shares the state of an expert over cp x dp ranks, and that is one; use "
                        "zero=0, or cp or dp of 2 or more",
                        plan.split.zero, ep));
}

}  // namespace

void check_state(const Plan& plan, const model::Model& model, Refusals& refusals) {
    check_experts(plan, model, refusals);
    if (std::ranges::none_of(model.parameters, &model::Parameter::trainable))
        refusals.emplace_back("no parameter of this model trains; set trainable: true on a layer");
    check_zero(plan, model, refusals);
    check_recompute(plan, model, refusals);
}

}  // namespace lockstep::plan
