#include "step/assembly.hpp"

namespace lockstep::step {

Assembly::Assembly(const BuildInput& i)
    : input(i), graph(i), parameters(i.model.parameters.size()), layers(i.model.layers.size()) {}

TensorId Assembly::source(const model::Layer& layer, std::size_t slot) const {
    const model::LayerId from = layer.inputs[slot];
    return from.is_valid() ? layers[from.index()].output : inputs[static_cast<std::size_t>(layer.model_input)];
}

TensorId Assembly::add_activation(std::string name, const Shape& per_sample, DType dtype) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape.extents = {batch()};
    tensor.shape.extents.insert(tensor.shape.extents.end(), per_sample.extents.begin(), per_sample.extents.end());
    tensor.shards = {{0, plan::Axis::dp}};
    tensor.dtype = dtype;
    tensor.layout = tensor.shape.rank() == 4 ? Layout::channels_last : Layout::row_major;
    return graph.add(std::move(tensor));
}

}  // namespace lockstep::step
