#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/check_parts.hpp"

namespace lockstep::plan {

bool is_over_tokens(const model::Model& model) {
    return std::ranges::all_of(model.inputs,
                               [](const model::Input& input) { return input.kind == model::Input::Kind::tokens; });
}

const model::Layer* end_of_sequence(const model::Model& model) {
    if (!is_over_tokens(model)) return nullptr;
    const auto ends = [](const model::Layer& layer) {
        return std::holds_alternative<model::FirstToken>(layer.kind) ||
               std::holds_alternative<model::Flatten>(layer.kind);
    };
    const auto place = std::ranges::find_if(model.layers, ends);
    return place == model.layers.end() ? nullptr : &*place;
}

std::vector<std::string> plan_refusals(const Plan& plan, const model::Model& model) {
    Refusals refusals;
    const Mesh& mesh = plan.mesh;
    for (const int extent : {mesh.tp, mesh.cp, mesh.ep, mesh.dp, mesh.replica, mesh.pp, plan.split.vpp})
        if (extent < 1) return {fmt::format("a parallel size of {} in the plan; use 1 or more", extent)};
    if (plan.micro_batch < 1 || plan.accumulation < 1)
        return {fmt::format("{} passes of {} samples; use 1 or more of each", plan.accumulation, plan.micro_batch)};
    check_tensor_parallel(plan, model, refusals);
    check_sequence(plan, model, refusals);
    check_pipeline(plan, model, refusals);
    check_state(plan, model, refusals);
    return refusals;
}

void check_plan(const Plan& plan, const model::Model& model) {
    const Refusals refusals = plan_refusals(plan, model);
    if (refusals.empty()) return;
    throw InputError(fmt::format("{}: {}", model.name, fmt::join(refusals, "\n" + model.name + ": ")));
}

}  // namespace lockstep::plan
