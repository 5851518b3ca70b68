// Graphs for the tests of step/.
#pragma once

#include <functional>
#include <string>

#include "config/data_path.hpp"
#include "model/model.hpp"
#include "step/builder.hpp"

namespace lockstep::step::test {

inline model::Model load(const std::string& name) {
    return model::load_model(config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}), name);
}

struct Options {
    int dp = 2;
    std::int64_t micro_batch = 2;
    int accumulation = 1;
    Precision precision = Precision::fp32;
    plan::Framework framework{};
    plan::Optimizer optimizer = plan::Optimizer::sgd_momentum;
    bool overlap = true;
    std::optional<Copy> input{};
};

inline StepGraph build(const model::Model& model, const Options& options = {}) {
    plan::Plan plan;
    plan.mesh.dp = options.dp;
    plan.micro_batch = options.micro_batch;
    plan.accumulation = options.accumulation;
    plan.overlap = options.overlap;
    plan.optimizer = options.optimizer;
    return build_step({.model = model,
                       .plan = plan,
                       .framework = options.framework,
                       .placement = {options.dp, options.dp},
                       .precision = options.precision,
                       .seed = 1,
                       .input = options.input});
}

/// Of a plan whose ranks are all on one node.
inline StepGraph build_plan(const model::Model& model, const plan::Plan& plan, const plan::Framework& framework = {},
                            Precision precision = Precision::fp32) {
    return build_step({.model = model,
                       .plan = plan,
                       .framework = framework,
                       .placement = {plan.mesh.ranks(), plan.mesh.ranks()},
                       .precision = precision,
                       .seed = 1,
                       .input = std::nullopt});
}

inline StepGraph build(const std::string& name, const Options& options = {}) { return build(load(name), options); }

/// Ops of one step in issue order.
inline std::vector<OpInstance> issued(const StepGraph& graph) {
    std::vector<OpInstance> ops;
    for_each_op(graph, graph.classes[0].program, [&](const OpInstance& op) { ops.push_back(op); });
    return ops;
}

inline std::int64_t count_if(const StepGraph& graph, const std::function<bool(const Op&)>& matches) {
    std::int64_t n = 0;
    for (const OpInstance& op : issued(graph)) n += matches(*op.op) ? 1 : 0;
    return n;
}
inline std::int64_t count_kind(const StepGraph& graph, const std::string& kind) {
    return count_if(graph, [&](const Op& op) { return kind_name(op) == kind; });
}

}  // namespace lockstep::step::test
