#include "step/assembly.hpp"

#include "base/error.hpp"

namespace lockstep::step {

using plan::Axis;
using plan::Spread;

namespace {

/// True where the first extent of the output is a sequence: ids and what is computed from them position by position.
std::vector<bool> find_token_wise(const model::Model& model) {
    std::vector<bool> result(model.layers.size(), false);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const model::Layer& layer = model.layers[i];
        if (std::holds_alternative<model::FirstToken>(layer.kind) || std::holds_alternative<model::Flatten>(layer.kind))
            continue;
        const model::LayerId from = layer.inputs[0];
        result[i] = from.is_valid()
                        ? result[from.index()]
                        : model.inputs[static_cast<std::size_t>(layer.model_input)].kind == model::Input::Kind::tokens;
    }
    return result;
}

/// The extent of each parameter that tp splits.
std::vector<int> find_tp_dimensions(const model::Model& model, const std::vector<plan::LayerSplit>& splits) {
    std::vector<int> dimensions(model.parameters.size(), -1);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const auto& parameters = model.layers[i].parameters;
        switch (splits[i].weights) {
            case plan::WeightSplit::whole: break;
            case plan::WeightSplit::columns:
                for (const model::ParameterId id : parameters) dimensions[id.index()] = 0;
                break;
            case plan::WeightSplit::rows: dimensions[parameters[0].index()] = 1; break;
            case plan::WeightSplit::vocabulary: dimensions[parameters[0].index()] = 0; break;
        }
    }
    return dimensions;
}

std::vector<bool> find_experts(const model::Model& model) {
    std::vector<bool> result(model.parameters.size(), false);
    for (const model::Layer& layer : model.layers)
        if (std::holds_alternative<model::GroupedLinear>(layer.kind))
            for (const model::ParameterId id : layer.parameters) result[id.index()] = true;
    return result;
}

bool has_causal_attention(const model::Model& model) {
    for (const model::Layer& layer : model.layers)
        if (const auto* attention = std::get_if<model::Attention>(&layer.kind))
            if (attention->causal) return true;
    return false;
}

}  // namespace

Shape local_shape(const Assembly& a, model::ParameterId id) {
    Shape shape = a.parameter(id).shape;
    const int dimension = a.tp_dimension[id.index()];
    if (dimension >= 0) shape.extents[static_cast<std::size_t>(dimension)] /= a.mesh().tp;
    if (a.is_expert[id.index()]) shape.extents.front() /= a.mesh().ep;
    return shape;
}

std::int64_t rows_of(const Tensor& tensor) { return tensor.elements() / tensor.shape.back(); }

Assembly::Assembly(const BuildInput& i)
    : input(i),
      graph(i),
      splits(plan::split_layers(i.model, i.plan.mesh.tp, i.plan.split.sequence_parallel)),
      tp_dimension(find_tp_dimensions(i.model, splits)),
      is_expert(find_experts(i.model)),
      is_token_wise(find_token_wise(i.model)),
      parameters(static_cast<std::size_t>(i.plan.mesh.pp)),
      layers(i.model.layers.size()),
      is_zigzag(i.plan.mesh.cp > 1 && i.plan.split.context == plan::ContextAlgorithm::ring &&
                has_causal_attention(i.model)) {}

TensorId Assembly::model_input(const Chunk& chunk, int number, Spread spread) const {
    const auto found = chunk.inputs.find({number, spread});
    if (found == chunk.inputs.end()) throw LogicError("a pipeline chunk reads an input of the model it doesn't have");
    return found->second;
}

TensorId Assembly::source(const Chunk& chunk, model::LayerId id, std::size_t slot) const {
    const model::LayerId from = layer(id).inputs[slot];
    if (!from.is_valid()) return model_input(chunk, layer(id).model_input, splits[id.index()].input);
    return chunk_of[from.index()] == chunk.number ? layers[from.index()].output : chunk.received;
}

TensorId* Assembly::gradient_of_source(Chunk& chunk, model::LayerId id, std::size_t slot) {
    const model::LayerId from = layer(id).inputs[slot];
    if (!from.is_valid() || !layers[from.index()].needs_gradient) return nullptr;
    return chunk_of[from.index()] == chunk.number ? &layers[from.index()].gradient : &chunk.sent_gradient;
}

TensorId Assembly::add_activation(std::string name, const Shape& per_sample, DType dtype, Kind kind, Spread spread) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.dtype = dtype;
    std::vector<std::int64_t>& extents = tensor.shape.extents;
    extents = per_sample.extents;
    const int batch_dimension = kind == Kind::tokens ? 1 : 0;
    auto split = [&](int dimension, Axis axis, Shard::Order order = Shard::Order::contiguous) {
        if (mesh().extent(axis) > 1) tensor.shards.push_back({dimension, axis, order});
    };
    if (kind == Kind::tokens) {
        extents.front() /= mesh().cp;
        split(0, Axis::cp, is_zigzag ? Shard::Order::zigzag : Shard::Order::contiguous);
        if (spread == Spread::sequence) {
            extents.front() /= mesh().tp;
            split(0, Axis::tp);
        }
    }
    extents.insert(extents.begin() + batch_dimension, batch());
    for (const Axis axis : {Axis::replica, Axis::dp, Axis::ep}) split(batch_dimension, axis);
    if (spread == Spread::features) {
        extents.back() /= mesh().tp;
        split(static_cast<int>(extents.size()) - 1, Axis::tp);
    }
    tensor.layout = tensor.shape.rank() == 4 ? Layout::channels_last : Layout::row_major;
    return graph.add(std::move(tensor));
}

TensorId Assembly::add_expert_rows(std::string name, model::LayerId dispatch, std::int64_t width) {
    const Shape rows = graph.tensor(layers[dispatch.index()].saved.at(1)).shape;  // row_tokens
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.dtype = activation();
    tensor.shape = {rows[0] / mesh().ep, rows[1] * mesh().ep, width};
    if (mesh().ep > 1) tensor.shards.push_back({0, Axis::ep});
    for (const Axis axis : {Axis::replica, Axis::dp, Axis::cp})
        if (mesh().extent(axis) > 1) tensor.shards.push_back({1, axis});
    return graph.add(std::move(tensor));
}

TensorId Assembly::add_output(std::string name, model::LayerId id, Spread spread) {
    if (layer(id).dispatch.is_valid())
        return add_expert_rows(std::move(name), layer(id).dispatch, layer(id).output.back());
    return add_activation(std::move(name), layer(id).output, activation(), kind_of(id), spread);
}

TensorId Assembly::add_like(std::string name, TensorId other) {
    Tensor copy = graph.tensor(other);
    copy.name = std::move(name);
    copy.view.reset();
    copy.initial = {};
    return graph.add(std::move(copy));
}

CommunicationLane Assembly::lane(const std::string& name, const std::vector<Axis>& axes, std::vector<int> stages) {
    const auto [found, is_new] = lanes_.try_emplace(name);
    if (!is_new) return found->second;
    std::int64_t size = 1;
    for (const Axis axis : axes)
        size *= axis == Axis::pp && !stages.empty() ? static_cast<std::int64_t>(stages.size()) : mesh().extent(axis);
    const CommunicatorId communicator = graph.add_communicator({name, axes, size, std::move(stages)});
    return found->second = {communicator, graph.add_stream({Stream::Lane::communication, communicator, name})};
}

StreamId Assembly::input_stream() {
    if (!input_stream_.is_valid()) input_stream_ = graph.add_stream({Stream::Lane::input, CommunicatorId{}, "input"});
    return input_stream_;
}

std::vector<Axis> Assembly::data_axes(GradientSum sum) const {
    std::vector<Axis> axes = shard_axes(sum);
    if (mesh().replica > 1) axes.push_back(Axis::replica);
    return axes;
}

std::vector<Axis> Assembly::shard_axes(GradientSum sum) const {
    std::vector<Axis> axes;
    for (const Axis axis : {Axis::cp, Axis::ep, Axis::dp})
        if (mesh().extent(axis) > 1 && !(axis == Axis::ep && sum == GradientSum::of_experts)) axes.push_back(axis);
    return axes;
}

int Assembly::extent(const std::vector<Axis>& axes) const {
    int extent = 1;
    for (const Axis axis : axes) extent *= mesh().extent(axis);
    return extent;
}

}  // namespace lockstep::step
