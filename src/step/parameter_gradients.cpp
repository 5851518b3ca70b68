#include "step/parameter_gradients.hpp"

namespace lockstep::step {

namespace {

/// Sums over micro-batches are kept here, unless each pass is scattered and summed behind that.
Access access_of_sum(const Assembly& a, const ParameterTensors& parameter) {
    return scatters_each_pass(a, parameter.sum) ? Access::overwrite : Access::accumulate_micro_batches;
}

}  // namespace

bool has_gradient(const LayerStep& at, std::size_t slot) {
    return slot < at.layer.parameters.size() &&
           at.a.tensors_of(at.chunk, at.layer.parameters[slot]).gradient.is_valid();
}

Write next_contribution(const LayerStep& at, std::size_t slot) {
    ParameterTensors& mine = at.a.tensors_of(at.chunk, at.layer.parameters[slot]);
    const bool is_first = !mine.is_written;
    mine.is_written = true;
    if (!is_first) return {mine.kernel_gradient, Access::accumulate};
    return {mine.kernel_gradient,
            mine.kernel_gradient == mine.gradient ? access_of_sum(at.a, mine) : Access::overwrite};
}

void contribution_done(const LayerStep& at, std::size_t slot) {
    const model::ParameterId id = at.layer.parameters[slot];
    ParameterTensors& mine = at.a.tensors_of(at.chunk, id);
    if (--mine.uses_left > 0) return;
    if (mine.kernel_gradient != mine.gradient)
        at.a.graph.add_op(at.a.parameter(id).name + ".gradient_cast",
                          Compute{Cast{at.a.graph.tensor(mine.gradient).elements()}}, {mine.kernel_gradient},
                          {{mine.gradient, access_of_sum(at.a, mine)}}, model::LayerId{});
    gradient_is_ready(at.a, at.chunk, id);
}

}  // namespace lockstep::step
