#include "step/parameter_gradients.hpp"

namespace lockstep::step {

bool has_gradient(const Assembly& a, const model::Layer& layer, std::size_t slot) {
    return slot < layer.parameters.size() && a.parameters[layer.parameters[slot].index()].gradient.is_valid();
}

Write next_contribution(Assembly& a, model::ParameterId id) {
    ParameterTensors& mine = a.parameters[id.index()];
    const bool is_first = !mine.is_written;
    mine.is_written = true;
    if (!is_first) return {mine.kernel_gradient, Access::accumulate};
    return {mine.kernel_gradient,
            mine.kernel_gradient == mine.gradient ? Access::accumulate_micro_batches : Access::overwrite};
}

void contribution_done(Assembly& a, model::ParameterId id) {
    ParameterTensors& mine = a.parameters[id.index()];
    if (--mine.uses_left > 0) return;
    if (mine.kernel_gradient != mine.gradient)
        a.graph.add_op(a.parameter(id).name + ".gradient_cast", Compute{Cast{a.parameter(id).elements()}},
                       {mine.kernel_gradient}, {{mine.gradient, Access::accumulate_micro_batches}}, model::LayerId{});
    gradient_is_ready(a, id);
}

}  // namespace lockstep::step
