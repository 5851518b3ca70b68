#include "step/precision.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

DType parameter_dtype(Precision precision) {
    if (precision == Precision::fp8)
        throw InputError(
            "precision fp8 can't be built into a training step (its scaling factors and amax history are not modelled "
            "yet); use fp32, tf32, fp16-amp or bf16");
    return precision == Precision::bf16 ? DType::bf16 : DType::fp32;
}

DType gradient_dtype(Precision precision) { return parameter_dtype(precision); }

namespace {

bool is_norm(const model::Parameter& parameter) {
    return parameter.role == model::ParameterRole::norm_scale || parameter.role == model::ParameterRole::norm_shift;
}

TensorId add_scalar(Assembly& a, std::string name, Lifetime lifetime, Initial initial) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = {1};
    tensor.role = Role::scalar;
    tensor.lifetime = lifetime;
    tensor.initial = initial;
    return a.graph.add(std::move(tensor));
}

}  // namespace

void cast_working_copies(Assembly& a, int stage) {
    if (a.input.precision != Precision::fp16_amp) return;
    for (auto& [id, tensors] : a.parameters[static_cast<std::size_t>(stage)]) {
        const model::Parameter& parameter = a.parameter(id);
        if (is_norm(parameter)) continue;
        tensors.working = a.add_like(parameter.name + ".fp16", tensors.parameter);
        Tensor& copy = a.graph.graph().tensors[tensors.working.index()];
        copy.dtype = DType::fp16;
        copy.lifetime = Lifetime::step;
        a.graph.add_op(parameter.name + ".cast", Compute{Cast{copy.elements()}}, {tensors.parameter},
                       {{tensors.working, Access::overwrite}}, model::LayerId{});
    }
}

void make_loss_scale(Assembly& a) {
    if (a.input.precision != Precision::fp16_amp) return;
    a.loss_scale = add_scalar(a, "loss_scale", Lifetime::carried, {Initial::Kind::value, 65536, 0, 0});
    a.growth_tracker = add_scalar(a, "growth_tracker", Lifetime::carried, {Initial::Kind::zero, 0, 0, 0});
    a.found_inf = add_scalar(a, "found_inf", Lifetime::step, {});
}

void check_finite(Assembly& a, const std::vector<TensorId>& gradients) {
    if (!a.loss_scale.is_valid()) return;
    std::int64_t count = 0;
    for (const TensorId id : gradients) count += a.graph.tensor(id).elements();
    a.graph.add_op("found_inf", Compute{FoundInf{count}}, gradients, {{a.found_inf, Access::overwrite}},
                   model::LayerId{});
    std::vector<plan::Axis> axes = a.zero() > 0 ? a.shard_axes() : std::vector<plan::Axis>{};
    if (a.zero() == 0 && a.mesh().ep > 1) axes.push_back(plan::Axis::ep);  // other experts
    for (const plan::Axis axis : {plan::Axis::tp, plan::Axis::pp})
        if (a.mesh().extent(axis) > 1) axes.push_back(axis);
    if (!axes.empty()) {
        const CommunicationLane lane = a.lane("model", axes);
        Op& op =
            a.graph.add_op_on(lane.stream, "found_inf.all_reduce",
                              Collective{CollectiveKind::all_reduce, lane.communicator, Reduction::max, 1, DType::fp32},
                              {a.found_inf}, {{a.found_inf, Access::update}});
        op.phase = Phase::optimizer;
    }
    a.graph.add_op("found_inf.sync", HostSync{HostSync::Reason::found_inf}, {a.found_inf}, {}, model::LayerId{});
}

void update_loss_scale(Assembly& a) {
    if (!a.loss_scale.is_valid()) return;
    a.graph.add_op("update_loss_scale", Compute{UpdateLossScale{}}, {a.found_inf},
                   {{a.loss_scale, Access::update}, {a.growth_tracker, Access::update}}, model::LayerId{});
}

}  // namespace lockstep::step
