#include <fmt/format.h>

#include "base/error.hpp"
#include "plan/check_parts.hpp"
#include "plan/nearby.hpp"
#include "plan/stages.hpp"

namespace lockstep::plan {

namespace {

void check_schedule(const Plan& plan, Refusals& refusals) {
    const Split& split = plan.split;
    const int pp = plan.mesh.pp;
    if (split.vpp > 1 && pp == 1)
        refusals.push_back(fmt::format("vpp={} wants a pipeline; use pp of 2 or more, or vpp=1", split.vpp));
    if (split.vpp > 1 && split.schedule != Schedule::interleaved)
        refusals.push_back(
            fmt::format("schedule {} has one chunk a stage, and vpp is {}; use schedule: interleaved, or "
                        "vpp=1",
                        to_string(split.schedule), split.vpp));
    if (split.vpp == 1 && split.schedule == Schedule::interleaved)
        refusals.emplace_back(
            "schedule interleaved has several chunks a stage; use vpp of 2 or more, or schedule: 1f1b");
    if (split.schedule == Schedule::interleaved && plan.accumulation % pp != 0)
        refusals.push_back(
            fmt::format("schedule interleaved takes micro-batches in groups of pp={}, and a step has {}; "
                        "use {} (accumulation, or batch / microbatch), or schedule: 1f1b",
                        pp, plan.accumulation, nearest_multiples(plan.accumulation, pp, max_accumulation)));
}

/// A weight of several layers has its gradient summed where they meet: on one stage, or between the first and the last.
void check_shared_weights(const Plan& plan, const model::Model& model, const std::vector<int>& chunks,
                          Refusals& refusals) {
    std::vector<int> first_user(model.parameters.size(), -1);
    const int last = plan.mesh.pp - 1;
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        for (const model::ParameterId id : model.layers[i].parameters) {
            int& first = first_user[id.index()];
            if (first < 0) {
                first = static_cast<int>(i);
                continue;
            }
            const int a = chunks[static_cast<std::size_t>(first)] % plan.mesh.pp;
            const int b = chunks[i] % plan.mesh.pp;
            if (a == b || (std::min(a, b) == 0 && std::max(a, b) == last)) continue;
            refusals.push_back(
                fmt::format("layers '{}' and '{}' share weight '{}' but are on stages {} and {} (only the "
                            "first and the last stage share); use a pp that keeps them together",
                            model.layers[static_cast<std::size_t>(first)].name, model.layers[i].name,
                            model.parameters[id.index()].name, a, b));
        }
}

}  // namespace

void check_pipeline(const Plan& plan, const model::Model& model, Refusals& refusals) {
    check_schedule(plan, refusals);
    if (plan.chunks() == 1 && plan.split.stage_blocks.empty()) return;
    try {
        const std::vector<int> chunks = chunk_of_layer(model, plan);
        const std::vector<std::string> cuts = cut_refusals(model, chunks, plan.chunks());
        refusals.insert(refusals.end(), cuts.begin(), cuts.end());
        check_shared_weights(plan, model, chunks, refusals);
    } catch (const InputError& failure) { refusals.emplace_back(failure.what()); }
}

}  // namespace lockstep::plan
