#include "step/model_tensors.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "step/precision.hpp"

namespace lockstep::step {

using plan::Spread;

namespace {

bool trains(const model::Model& model, const model::Layer& layer) {
    return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                       [&](model::ParameterId id) { return model.parameters[id.index()].trainable; });
}

/// Parameters that are whole on each tp rank, of layers that see a part of the sequence.
bool sees_part_of_sequence(const Assembly& a, model::LayerId layer, model::ParameterId id) {
    return a.mesh().tp > 1 && a.tp_dimension[id.index()] < 0 && a.splits[layer.index()].output == Spread::sequence;
}

TensorId add_input(Assembly& a, const std::string& name, const Shape& per_sample, DType dtype, const Initial& initial,
                   Assembly::Kind kind, Spread spread) {
    const TensorId id =
        a.add_activation(spread == Spread::sequence ? name + ".part" : name, per_sample, dtype, kind, spread);
    Tensor& tensor = a.graph.graph().tensors[id.index()];
    tensor.role = Role::input;
    tensor.initial = initial;
    if (initial.kind == Initial::Kind::none) return id;
    tensor.initial.stream = random_stream(name);
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

/// Makes a chunk's inputs, staged when a data pipeline brings them.
class Inputs {
public:
    Inputs(Assembly& a, Chunk& chunk) : a_(a), chunk_(chunk) {}

    void add_model_inputs() {
        for (const model::LayerId id : chunk_.layers) {
            const model::Layer& layer = a_.layer(id);
            for (const model::LayerId from : layer.inputs)
                if (!from.is_valid()) add(layer.model_input, a_.splits[id.index()].input);
        }
    }
    void add_labels() {
        const model::LayerId id = chunk_.layers.back();
        const Initial labels{Initial::Kind::class_labels, 0, std::get<model::SoftmaxLoss>(a_.layer(id).kind).classes,
                             0};
        a_.labels = add("labels", label_shape(a_.layer(id)), DType::int32, labels, a_.kind_of(id), Spread::whole);
    }
    void add_pipeline() {
        if (!a_.input.input || used_.empty()) return;
        const StreamId stream = a_.input_stream();
        chunk_.input = a_.graph.add_block(a_.chunks.size() == 1 ? "input" : fmt::format("chunk{}.input", chunk_.number),
                                          Phase::input);
        a_.graph.open(chunk_.input);
        Copy copy = *a_.input.input;
        copy.kind = Copy::Kind::input;
        copy.count = 0;
        std::vector<Write> brought;
        for (const TensorId id : staged_) {
            brought.push_back({id, Access::update});
            copy.count += a_.graph.tensor(id).elements();
        }
        a_.graph.add_op_on(stream, "input.load", copy, {}, brought).host_time = Seconds{};
        for (std::size_t i = 0; i < used_.size(); ++i)
            a_.graph.add_op(fmt::format("{}.copy", a_.graph.tensor(used_[i]).name),
                            Copy{Copy::Kind::host_to_device, a_.graph.tensor(used_[i]).elements(), 1, Seconds{}},
                            {staged_[i]}, {{used_[i], Access::overwrite}}, model::LayerId{});
    }

private:
    void add(int number, Spread spread) {
        if (chunk_.inputs.count({number, spread}) != 0) return;
        const model::Input& input = a_.model().inputs[static_cast<std::size_t>(number)];
        const bool is_tokens = input.kind == model::Input::Kind::tokens;
        chunk_.inputs[{number, spread}] =
            add(input.name, input.shape, is_tokens ? DType::int32 : a_.activation(), initial_of(input),
                is_tokens ? Assembly::Kind::tokens : Assembly::Kind::samples, spread);
    }
    TensorId add(const std::string& name, const Shape& per_sample, DType dtype, const Initial& initial,
                 Assembly::Kind kind, Spread spread) {
        if (a_.input.input)
            staged_.push_back(add_input(a_, name + ".staged", per_sample, dtype, initial, kind, spread));
        used_.push_back(add_input(a_, name, per_sample, dtype, a_.input.input ? Initial{} : initial, kind, spread));
        return used_.back();
    }

    Assembly& a_;
    Chunk& chunk_;
    std::vector<TensorId> staged_, used_;
};

}  // namespace

void mark_gradient_flow(Assembly& a) {
    std::vector<int> stage_of(a.parameters.empty() ? 0 : a.model().parameters.size(), -1);
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
        const model::LayerId id{static_cast<std::int32_t>(i)};
        const model::Layer& layer = a.layer(id);
        Chunk& chunk = a.chunks[static_cast<std::size_t>(a.chunk_of[i])];
        bool needs = trains(a.model(), layer);
        for (const model::LayerId from : layer.inputs)
            needs = needs || (from.is_valid() && a.layers[from.index()].needs_gradient);
        a.layers[i].needs_gradient = needs;
        for (const model::ParameterId parameter : layer.parameters) {
            ParameterTensors& mine = a.tensors_of(chunk, parameter);
            if (needs && a.parameter(parameter).trainable) ++mine.uses_left;
            if (sees_part_of_sequence(a, id, parameter)) mine.sum = GradientSum::over_tp;
            if (a.is_expert[parameter.index()] && a.mesh().ep > 1) mine.sum = GradientSum::of_experts;
            int& stage = stage_of[parameter.index()];
            if (stage >= 0 && stage != chunk.stage) {
                mine.sum = GradientSum::over_stages;
                a.parameters[static_cast<std::size_t>(stage)][parameter].sum = GradientSum::over_stages;
            }
            stage = chunk.stage;
        }
    }
}

void make_inputs(Assembly& a, Chunk& chunk) {
    Inputs inputs(a, chunk);
    inputs.add_model_inputs();
    if (chunk.is_last()) inputs.add_labels();
    inputs.add_pipeline();
}

void make_parameters(Assembly& a, Chunk& chunk) {
    for (const model::LayerId layer : chunk.layers)
        for (const model::ParameterId id : a.layer(layer).parameters) {
            ParameterTensors& mine = a.tensors_of(chunk, id);
            if (mine.parameter.is_valid()) continue;
            const model::Parameter& parameter = a.parameter(id);
            mine.parameter = parameter_view(a, chunk, id, parameter.name);
            const bool is_view = mine.parameter.is_valid();
            if (!is_view) mine.parameter = a.graph.add(Tensor{});
            Tensor& tensor = a.graph.graph().tensors[mine.parameter.index()];
            if (!is_view) {
                tensor.name = parameter.name;
                tensor.shape = local_shape(a, id);
                tensor.dtype = parameter_dtype(a.input.precision);
                tensor.role = Role::parameter;
                tensor.lifetime = Lifetime::carried;
            }
            if (parameter.shape.rank() == 4 && !a.is_packed()) tensor.layout = Layout::channels_last;
            if (const int dimension = a.tp_dimension[id.index()]; dimension >= 0 && a.mesh().tp > 1)
                tensor.shards = {{dimension, plan::Axis::tp}};
            if (a.is_expert[id.index()] && a.mesh().ep > 1) tensor.shards.push_back({0, plan::Axis::ep});
            tensor.parameter = id;
            tensor.initial = initial_of(parameter, parameter.name);
            mine.working = mine.parameter;
        }
}

void make_gradients(Assembly& a, Chunk& chunk) {
    for (const model::LayerId layer : chunk.layers)
        for (const model::ParameterId id : a.layer(layer).parameters) {
            ParameterTensors& mine = a.tensors_of(chunk, id);
            if (mine.uses_left == 0 || mine.gradient.is_valid()) continue;
            const bool is_cast = mine.working != mine.parameter;
            const Role role = is_cast ? Role::main_gradient : Role::gradient;
            const std::string name = fmt::format("{}.{}", a.parameter(id).name, to_string(role));
            const Tensor parameter = a.graph.tensor(mine.parameter);
            mine.gradient = gradient_view(a, chunk, id, name);
            if (!mine.gradient.is_valid()) {
                mine.gradient = a.add_like(name, mine.parameter);
                a.graph.graph().tensors[mine.gradient.index()].lifetime = Lifetime::step;
            }
            Tensor& gradient = a.graph.graph().tensors[mine.gradient.index()];
            gradient.layout = parameter.layout;
            gradient.shards = parameter.shards;
            gradient.role = role;
            mine.kernel_gradient = mine.gradient;
            if (!is_cast) continue;
            mine.kernel_gradient = a.add_like(a.parameter(id).name + ".gradient", mine.working);
            Tensor& written = a.graph.graph().tensors[mine.kernel_gradient.index()];
            written.role = Role::gradient;
            written.lifetime = Lifetime::micro_batch;
        }
}

}  // namespace lockstep::step
