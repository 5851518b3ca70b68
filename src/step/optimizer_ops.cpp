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

void add_slots(Assembly& a, const ParameterTensors& mine, OptimizerUpdate& update, std::vector<TensorId>& in,
               std::vector<Write>& out) {
    in.push_back(mine.gradient);
    out.push_back({mine.parameter, Access::update});
    if (update.kind == plan::Optimizer::adam) {
        out.push_back({add_state(a, mine.parameter, "first_moment", Role::optimizer_state), Access::update});
        out.push_back({add_state(a, mine.parameter, "second_moment", Role::optimizer_state), Access::update});
    } else {
        out.push_back({add_state(a, mine.parameter, "momentum", Role::optimizer_state), Access::update});
    }
    if (update.has_master) out.push_back({add_state(a, mine.parameter, "master", Role::master_weight), Access::update});
    ++update.parameters;
    update.count += a.graph.tensor(mine.parameter).elements();
}

void add_update(Assembly& a, std::string name, const std::vector<const ParameterTensors*>& updated) {
    OptimizerUpdate update;
    update.kind = a.input.plan.optimizer;
    update.learning_rate = learning_rate;
    update.has_master = parameter_dtype(a.input.precision) != DType::fp32;
    update.has_loss_scale = a.loss_scale.is_valid();
    std::vector<TensorId> in;
    std::vector<Write> out;
    for (const ParameterTensors* mine : updated) add_slots(a, *mine, update, in, out);
    if (update.has_loss_scale) in.insert(in.end(), {a.found_inf, a.loss_scale});
    a.graph.add_op(std::move(name), Compute{update}, std::move(in), std::move(out), model::LayerId{});
}

}  // namespace

void add_optimizer(Assembly& a) {
    std::vector<const ParameterTensors*> trained;
    std::vector<TensorId> gradients;
    for (const ParameterTensors& mine : a.parameters) {
        if (!mine.gradient.is_valid()) continue;
        trained.push_back(&mine);
        gradients.push_back(mine.gradient);
    }
    a.graph.graph().reduced_gradients = gradients;
    if (trained.empty()) return;
    check_finite(a, gradients);
    if (a.input.framework.optimizer_fusion == plan::OptimizerFusion::fused) {
        add_update(a, "optimizer", trained);
    } else {
        for (const ParameterTensors* mine : trained)
            add_update(a, a.graph.tensor(mine->parameter).name + ".update", {mine});
    }
    update_loss_scale(a);
}

}  // namespace lockstep::step
