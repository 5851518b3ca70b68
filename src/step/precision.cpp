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

void cast_working_copies(Assembly& a) {
    if (a.input.precision != Precision::fp16_amp) return;
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const model::Parameter& parameter = a.model().parameters[i];
        if (is_norm(parameter)) continue;
        Tensor copy = a.graph.tensor(a.parameters[i].parameter);
        copy.name = parameter.name + ".fp16";
        copy.dtype = DType::fp16;
        copy.lifetime = Lifetime::step;
        copy.initial = {};
        a.parameters[i].working = a.graph.add(std::move(copy));
        a.graph.add_op(parameter.name + ".cast", Compute{Cast{parameter.elements()}}, {a.parameters[i].parameter},
                       {{a.parameters[i].working, Access::overwrite}}, model::LayerId{});
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
    a.graph.add_op("found_inf.sync", HostSync{HostSync::Reason::found_inf}, {a.found_inf}, {}, model::LayerId{});
}

void update_loss_scale(Assembly& a) {
    if (!a.loss_scale.is_valid()) return;
    a.graph.add_op("update_loss_scale", Compute{UpdateLossScale{}}, {a.found_inf},
                   {{a.loss_scale, Access::update}, {a.growth_tracker, Access::update}}, model::LayerId{});
}

}  // namespace lockstep::step
