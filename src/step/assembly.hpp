// A step graph in the making: what the parts of the builder share.
#pragma once

#include <vector>

#include "step/gradient_buckets.hpp"
#include "step/graph_writer.hpp"

namespace lockstep::step {

/// The tensors of a model's parameter. Invalid where there is none.
struct ParameterTensors {
    TensorId parameter;        ///< what the optimizer updates
    TensorId working;          ///< what kernels read: the parameter, or its cast copy
    TensorId kernel_gradient;  ///< what kernels write: the gradient, or one of the working copy's dtype
    TensorId gradient;         ///< sum over micro-batches, reduced over dp before the optimizer reads it
    int uses_left = 0;         ///< contributions of this pass still to come
    bool is_written = false;   ///< this pass has written to kernel_gradient
};

/// The tensors of a layer: what forward leaves for backward.
struct LayerTensors {
    TensorId input;  ///< of the first input
    TensorId output;
    std::vector<TensorId> saved;  ///< masks, statistics, indices: in the order of the op's extra outputs
    TensorId packed_weight;       ///< reordered for the forward pass (MemoryFormat::packed)
    TensorId packed_weight_backward;
    TensorId gradient;            ///< of the output: the sum of what its consumers gave so far
    bool needs_gradient = false;  ///< it or a layer before it trains
};

struct Assembly {
    explicit Assembly(const BuildInput& i);

    const BuildInput& input;
    GraphWriter graph;
    std::vector<ParameterTensors> parameters;  ///< by ParameterId
    std::vector<LayerTensors> layers;          ///< by LayerId
    std::vector<TensorId> inputs;              ///< what forward reads, by model input
    TensorId labels;
    TensorId loss;
    TensorId loss_scale;  ///< fp16-amp only
    TensorId growth_tracker;
    TensorId found_inf;
    GradientBuckets buckets;

    const model::Model& model() const { return input.model; }
    const model::Parameter& parameter(model::ParameterId id) const { return input.model.parameters[id.index()]; }
    std::int64_t batch() const { return input.plan.micro_batch; }
    int passes() const { return input.plan.accumulation; }
    DType activation() const { return activation_dtype(input.precision); }
    bool is_packed() const { return input.framework.memory_format == plan::MemoryFormat::packed; }
    TensorId source(const model::Layer& layer, std::size_t slot) const;
    /// A new tensor [micro-batch, shape...] of one pass, split over dp; images are channels-last.
    TensorId add_activation(std::string name, const Shape& per_sample, DType dtype);
};

}  // namespace lockstep::step
