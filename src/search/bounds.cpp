#include "search/bounds.hpp"

#include <algorithm>

#include "cost/peak_rate.hpp"
#include "model/cost.hpp"
#include "step/precision.hpp"

namespace lockstep::search {

namespace {

/// Multiply-adds of a forward pass that no kernel can leave out: of causal attention half.
double least_multiply_adds(const model::Model& model) {
    double all = static_cast<double>(model::forward_multiply_adds(model));
    for (const model::Layer& layer : model.layers) {
        const auto* attention = std::get_if<model::Attention>(&layer.kind);
        if (attention != nullptr && attention->causal)
            all -= 0.5 * static_cast<double>(model::multiply_adds_per_sample(layer));
    }
    return all;
}

bool is_trained_by_adam(const experiment::Experiment& experiment) {
    return experiment.optimizer == plan::Optimizer::adam;
}

}  // namespace

Bounds::Bounds(const Subject& subject) {
    const experiment::Experiment& experiment = subject.experiment;
    const machine::Calibration& calibration = subject.machine.calibration;
    forward_per_sample_ = Flops{2 * least_multiply_adds(experiment.model)};
    reached_ = cost::peak_rate(subject.machine.device, math_type(experiment.precision)) *
               std::max({calibration.gemm, calibration.attention, calibration.convolution});
    has_experts_ = experiment.model.has_experts();
    for (const model::Parameter& parameter : experiment.model.parameters)
        if (parameter.trainable) parameters_ += static_cast<double>(parameter.elements());
    const DType type = step::parameter_dtype(experiment.precision);
    weight_ = size_of(type);
    gradient_ = size_of(step::gradient_dtype(experiment.precision));
    const double numbers = (is_trained_by_adam(experiment) ? 2 : 1) + (type == DType::fp32 ? 0 : 1);
    state_ = numbers * size_of(DType::fp32);
}

Seconds Bounds::time(const plan::Plan& plan) const {
    const double passes = plan.split.recompute == plan::Recompute::full ? 4 : 3;
    const double samples = static_cast<double>(plan.global_batch()) / plan.mesh.ranks();
    const double bubble = (plan.mesh.pp - 1.0) / (static_cast<double>(plan.accumulation) * plan.split.vpp);
    return (1 + bubble) * (passes * samples * forward_per_sample_ / reached_);
}

Bytes Bounds::memory(const plan::Plan& plan) const {
    const plan::Mesh& mesh = plan.mesh;
    const double split = static_cast<double>(mesh.tp) * mesh.pp * (has_experts_ ? mesh.ep : 1);
    const double shared = static_cast<double>(mesh.cp) * mesh.dp * (has_experts_ ? 1 : mesh.ep);
    const int zero = plan.split.zero;
    const Bytes each =
        weight_ / (zero >= 3 ? shared : 1) + gradient_ / (zero >= 2 ? shared : 1) + state_ / (zero >= 1 ? shared : 1);
    return parameters_ / split * each;
}

}  // namespace lockstep::search
