#include "step/optimizer_ops.hpp"

#include <fmt/format.h>

#include "step/precision.hpp"

namespace lockstep::step {

namespace {

constexpr double learning_rate = 1e-6;  // small, so that synthetic training stays finite however long it runs

TensorId add_state(Assembly& a, TensorId parameter, const char* what, Role role) {
    Tensor state = a.graph.tensor(parameter);
    state.name = fmt::format("{}.{}", state.name, what);
    state.dtype = DType::fp32;
    state.role = role;
    if (role == Role::optimizer_state) state.initial = {Initial::Kind::zero, 0, 0, 0};
    return a.graph.add(std::move(state));
}

/// What is updated by one gradient: a parameter, or a rank's part of many.
struct Updated {
    TensorId parameter, gradient;
};

void add_slots(Assembly& a, const Updated& updated, OptimizerUpdate& update, std::vector<TensorId>& in,
               std::vector<Write>& out) {
    in.push_back(updated.gradient);
    out.push_back({updated.parameter, Access::update});
    if (update.kind == plan::Optimizer::adam) {
        out.push_back({add_state(a, updated.parameter, "first_moment", Role::optimizer_state), Access::update});
        out.push_back({add_state(a, updated.parameter, "second_moment", Role::optimizer_state), Access::update});
    } else {
        out.push_back({add_state(a, updated.parameter, "momentum", Role::optimizer_state), Access::update});
    }
    if (update.has_master)
        out.push_back({add_state(a, updated.parameter, "master", Role::master_weight), Access::update});
    ++update.parameters;
    update.count += a.graph.tensor(updated.parameter).elements();
}

void add_update(Assembly& a, std::string name, const std::vector<Updated>& all) {
    OptimizerUpdate update;
    update.kind = a.input.plan.optimizer;
    update.learning_rate = learning_rate;
    update.has_master = parameter_dtype(a.input.precision) != DType::fp32;
    update.has_loss_scale = a.loss_scale.is_valid();
    std::vector<TensorId> in;
    std::vector<Write> out;
    for (const Updated& updated : all) add_slots(a, updated, update, in, out);
    if (update.has_loss_scale) in.insert(in.end(), {a.found_inf, a.loss_scale});
    a.graph.add_op(std::move(name), Compute{update}, std::move(in), std::move(out), model::LayerId{});
}

std::vector<Updated> updated_on(Assembly& a, int stage) {
    std::vector<Updated> all;
    if (a.zero() == 0) {
        for (const auto& [id, mine] : a.parameters[static_cast<std::size_t>(stage)])
            if (mine.gradient.is_valid()) all.push_back({mine.parameter, mine.gradient});
        return all;
    }
    for (const Chunk& chunk : a.chunks)
        for (const GradientGroup& group : chunk.groups.groups)
            if (chunk.stage == stage && group.is_trained) all.push_back({group.parameter_shard, group.shard});
    return all;
}

}  // namespace

void add_optimizer(Assembly& a, int stage) {
    const std::vector<Updated> all = updated_on(a, stage);
    std::vector<TensorId> gradients;
    for (const Updated& updated : all) gradients.push_back(updated.gradient);
    std::vector<TensorId>& reduced = a.graph.graph().reduced_gradients;
    reduced.insert(reduced.end(), gradients.begin(), gradients.end());
    if (all.empty()) return;
    check_finite(a, gradients);
    if (a.input.framework.optimizer_fusion == plan::OptimizerFusion::fused) {
        add_update(a, "optimizer", all);
    } else {
        for (const Updated& updated : all) add_update(a, a.graph.tensor(updated.parameter).name + ".update", {updated});
    }
    update_loss_scale(a);
    if (a.zero() == 1 || a.zero() == 2)
        for (Chunk& chunk : a.chunks)
            if (chunk.stage == stage) gather_updated(a, chunk);
}

}  // namespace lockstep::step
