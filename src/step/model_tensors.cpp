#include "step/model_tensors.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "step/precision.hpp"

namespace lockstep::step {

namespace {

bool trains(const model::Model& model, const model::Layer& layer) {
    return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                       [&](model::ParameterId id) { return model.parameters[id.index()].trainable; });
}

TensorId add_input(Assembly& a, std::string name, const Shape& per_sample, DType dtype, const Initial& initial) {
    const TensorId id = a.add_activation(std::move(name), per_sample, dtype);
    Tensor& tensor = a.graph.graph().tensors[id.index()];
    tensor.role = Role::input;
    tensor.initial = initial;
    if (initial.kind == Initial::Kind::none) return id;
    tensor.initial.stream = random_stream(tensor.name);
    tensor.lifetime = Lifetime::carried;
    tensor.slots = a.passes();
    return id;
}

Initial initial_of(const model::Input& input) {
    if (input.kind == model::Input::Kind::tokens) return {Initial::Kind::token_ids, 0, input.vocab, 0};
    return {Initial::Kind::normal, 1, 0, 0};
}

/// Labels: one for each row of the logits.
Shape label_shape(const model::Layer& loss) {
    Shape shape = loss.input;
    shape.extents.pop_back();
    return shape;
}

TensorId add_maybe_staged(Assembly& a, std::vector<TensorId>& staged, const std::string& name, const Shape& per_sample,
                          DType dtype, const Initial& initial) {
    if (!a.input.input) return add_input(a, name, per_sample, dtype, initial);
    staged.push_back(add_input(a, name + ".staged", per_sample, dtype, initial));
    return add_input(a, name, per_sample, dtype, {});
}

Initial initial_of(const model::Parameter& parameter, const std::string& name) {
    Initial initial;
    switch (parameter.role) {
        case model::ParameterRole::norm_scale: initial.kind = Initial::Kind::one; break;
        case model::ParameterRole::bias:
        case model::ParameterRole::norm_shift: initial.kind = Initial::Kind::zero; break;
        default: initial = {Initial::Kind::normal, parameter.init_scale, 0, random_stream(name)};
    }
    return initial;
}

Layout layout_of(const Assembly& a, const model::Parameter& parameter) {
    return parameter.shape.rank() == 4 && !a.is_packed() ? Layout::channels_last : Layout::row_major;
}

}  // namespace

void mark_gradient_flow(Assembly& a) {
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
        const model::Layer& layer = a.model().layers[i];
        bool needs = trains(a.model(), layer);
        for (const model::LayerId from : layer.inputs)
            needs = needs || (from.is_valid() && a.layers[from.index()].needs_gradient);
        a.layers[i].needs_gradient = needs;
        if (!needs) continue;
        for (const model::ParameterId id : layer.parameters)
            if (a.parameter(id).trainable) ++a.parameters[id.index()].uses_left;
    }
}

BlockId make_inputs(Assembly& a) {
    std::vector<TensorId> staged;
    for (const model::Input& input : a.model().inputs) {
        const DType dtype = input.kind == model::Input::Kind::tokens ? DType::int32 : a.activation();
        a.inputs.push_back(add_maybe_staged(a, staged, input.name, input.shape, dtype, initial_of(input)));
    }
    const model::Layer& loss = a.model().layers.back();
    const Initial labels{Initial::Kind::class_labels, 0, std::get<model::SoftmaxLoss>(loss.kind).classes, 0};
    a.labels = add_maybe_staged(a, staged, "labels", label_shape(loss), DType::int32, labels);
    if (!a.input.input) return BlockId{};

    const StreamId stream = a.graph.add_stream({Stream::Lane::input, CommunicatorId{}, "input"});
    const BlockId block = a.graph.add_block("input", Phase::input);
    a.graph.open(block);
    std::vector<Write> brought;
    for (const TensorId id : staged) brought.push_back({id, Access::update});
    Copy copy = *a.input.input;
    copy.kind = Copy::Kind::input;
    copy.count = 0;
    for (const TensorId id : staged) copy.count += a.graph.tensor(id).elements();
    a.graph.add_op_on(stream, "input.load", copy, {}, brought).host_time = Seconds{};
    std::vector<TensorId> used = a.inputs;
    used.push_back(a.labels);
    for (std::size_t i = 0; i < used.size(); ++i)
        a.graph.add_op(fmt::format("{}.copy", a.graph.tensor(used[i]).name),
                       Copy{Copy::Kind::host_to_device, a.graph.tensor(used[i]).elements(), 1, Seconds{}}, {staged[i]},
                       {{used[i], Access::overwrite}}, model::LayerId{});
    return block;
}

void make_parameters(Assembly& a) {
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const model::Parameter& parameter = a.model().parameters[i];
        Tensor tensor;
        tensor.name = parameter.name;
        tensor.shape = parameter.shape;
        tensor.dtype = parameter_dtype(a.input.precision);
        tensor.role = Role::parameter;
        tensor.lifetime = Lifetime::carried;
        tensor.layout = layout_of(a, parameter);
        tensor.initial = initial_of(parameter, parameter.name);
        a.parameters[i].parameter = a.parameters[i].working = a.graph.add(std::move(tensor));
    }
}

void make_gradients(Assembly& a) {
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const model::ParameterId id{static_cast<std::int32_t>(i)};
        ParameterTensors& mine = a.parameters[i];
        if (mine.uses_left == 0) continue;
        const bool is_cast = mine.working != mine.parameter;
        Tensor tensor = a.graph.tensor(mine.parameter);
        tensor.initial = {};
        tensor.role = is_cast ? Role::main_gradient : Role::gradient;
        tensor.lifetime = Lifetime::step;
        const std::string name = fmt::format("{}.{}", a.parameter(id).name, to_string(tensor.role));
        mine.gradient = bucket_view(a, id, name);
        if (!mine.gradient.is_valid()) {
            tensor.name = name;
            mine.gradient = a.graph.add(tensor);
        } else {
            Tensor& view = a.graph.graph().tensors[mine.gradient.index()];
            view.layout = tensor.layout;
            view.role = tensor.role;
        }
        mine.kernel_gradient = mine.gradient;
        if (!is_cast) continue;
        tensor.name = a.parameter(id).name + ".gradient";
        tensor.role = Role::gradient;
        tensor.dtype = a.graph.tensor(mine.working).dtype;
        tensor.lifetime = Lifetime::micro_batch;
        mine.kernel_gradient = a.graph.add(std::move(tensor));
    }
}

}  // namespace lockstep::step
