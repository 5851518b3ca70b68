// A step graph in the making: what the parts of the builder share.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plan/tensor_split.hpp"
#include "step/gradient_groups.hpp"
#include "step/graph_writer.hpp"

namespace lockstep::step {

/// The tensors of a parameter on one pipeline stage. Invalid where there is none.
struct ParameterTensors {
    TensorId parameter;                   ///< what kernels read, or cast from
    TensorId working;                     ///< what kernels read: the parameter, or its cast copy
    TensorId kernel_gradient;             ///< what kernels write: the gradient, or one of the working copy's dtype
    TensorId gradient;                    ///< sum over micro-batches, on its way to the optimizer
    int uses_left = 0;                    ///< contributions of a pass still to come
    bool is_written = false;              ///< this pass has written to kernel_gradient
    GradientSum sum = GradientSum::none;  ///< of the gradient, before data parallelism
};

/// The tensors of a layer: what forward leaves for backward.
struct LayerTensors {
    TensorId source;  ///< the first input as its producer left it
    TensorId input;   ///< as the op reads it: gathered where the op needs the whole sequence
    TensorId output;
    std::vector<TensorId> saved;  ///< masks, statistics, indices: in the order of the op's extra outputs
    TensorId packed_weight;       ///< reordered for the forward pass (MemoryFormat::packed)
    TensorId packed_weight_backward;
    TensorId gradient;            ///< of the output: the sum of what its consumers gave so far
    bool needs_gradient = false;  ///< it or a layer before it trains
};

/// A range of ops of a block.
struct OpRange {
    std::size_t begin = 0, end = 0;
};

/// A chunk of the pipeline: the layers that a stage computes in one go.
struct Chunk {
    int number = 0;  ///< in the order in which the pipeline visits them
    int stage = 0;
    std::vector<model::LayerId> layers;
    model::LayerId arriving;     ///< the layer of the chunk before whose output comes in; invalid in the first
    model::LayerId leaving;      ///< the layer whose output goes to the next chunk; invalid in the last
    TensorId received;           ///< output of `arriving`
    TensorId received_gradient;  ///< of the output of `leaving`
    TensorId sent_gradient;      ///< of `received`
    int in_flight = 1;           ///< most micro-batches between their forward and backward pass
    std::map<std::pair<int, plan::Spread>, TensorId> inputs;  ///< of the model, by number and spread
    std::map<std::int32_t, TensorId> gathered;  ///< outputs of layers over the whole sequence, in this pass
    std::map<int, OpRange> forward_of_block;    ///< ops of a model block in `forward`
    std::map<std::int32_t, OpRange> forward_of_layer;
    GradientGroups groups;
    BlockId input, forward, backward;

    bool is_first() const { return !arriving.is_valid(); }
    bool is_last() const { return !leaving.is_valid(); }
};

/// A stream with the communicator it belongs to.
struct CommunicationLane {
    CommunicatorId communicator;
    StreamId stream;
};

struct Assembly {
    explicit Assembly(const BuildInput& i);

    const BuildInput& input;
    GraphWriter graph;
    std::vector<plan::LayerSplit> splits;  ///< by LayerId
    std::vector<int> tp_dimension;         ///< by ParameterId: the extent split over tp; -1: none
    std::vector<bool> is_expert;           ///< by ParameterId: of experts, whose first extent ep splits
    std::vector<bool> is_token_wise;       ///< by LayerId: the first extent of its output is a sequence
    std::vector<int> chunk_of;             ///< by LayerId
    std::vector<Chunk> chunks;
    std::vector<std::map<model::ParameterId, ParameterTensors>> parameters;  ///< by stage
    std::vector<LayerTensors> layers;                                        ///< by LayerId
    TensorId labels;
    TensorId loss;
    TensorId loss_scale;  ///< fp16-amp only
    TensorId growth_tracker;
    TensorId found_inf;
    bool is_zigzag = false;  ///< context-parallel ranks hold two parts of the sequence each

    const model::Model& model() const { return input.model; }
    const plan::Mesh& mesh() const { return input.plan.mesh; }
    const plan::Split& split() const { return input.plan.split; }
    const model::Parameter& parameter(model::ParameterId id) const { return input.model.parameters[id.index()]; }
    const model::Layer& layer(model::LayerId id) const { return input.model.layers[id.index()]; }
    std::int64_t batch() const { return input.plan.micro_batch; }
    int passes() const { return input.plan.accumulation; }
    DType activation() const { return activation_dtype(input.precision); }
    bool is_packed() const { return input.framework.memory_format == plan::MemoryFormat::packed; }
    /// Ranks that share optimizer state: cp ep dp; 1 without ZeRO.
    int shard_ranks() const { return split().zero > 0 ? mesh().cp * mesh().ep * mesh().dp : 1; }
    int zero() const { return shard_ranks() > 1 ? split().zero : 0; }

    ParameterTensors& tensors_of(const Chunk& chunk, model::ParameterId id) {
        return parameters[static_cast<std::size_t>(chunk.stage)][id];
    }
    /// What a layer's input slot reads.
    TensorId source(const Chunk& chunk, model::LayerId id, std::size_t slot) const;
    /// Where the gradient of that goes; null when nobody needs it.
    TensorId* gradient_of_source(Chunk& chunk, model::LayerId id, std::size_t slot);

    /// A new tensor of one pass: [seq, micro-batch, rest...] of a token-wise [seq, rest...], else [micro-batch, ...]
    /// (images are channels-last); this rank's part of it, split over replicas, cp and, by `spread`, tp.
    enum class Kind { tokens, samples };
    TensorId add_activation(std::string name, const Shape& per_sample, DType dtype, Kind kind, plan::Spread spread);
    /// Rows of the experts of this rank from all ranks that share them: [experts / ep, ep rows_per_expert, width].
    TensorId add_expert_rows(std::string name, model::LayerId dispatch, std::int64_t width);
    /// The output of a layer, or its gradient.
    TensorId add_output(std::string name, model::LayerId id, plan::Spread spread);
    TensorId add_output(std::string name, model::LayerId id) {
        return add_output(std::move(name), id, splits[id.index()].output);
    }
    Kind kind_of(model::LayerId id) const { return is_token_wise[id.index()] ? Kind::tokens : Kind::samples; }
    /// A tensor like another one, of its own storage.
    TensorId add_like(std::string name, TensorId other);

    /// A lane made on first use: a stream over the ranks that differ in `axes`.
    CommunicationLane lane(const std::string& name, const std::vector<plan::Axis>& axes, std::vector<int> stages = {});
    /// The stream on which a data pipeline brings batches.
    StreamId input_stream();
    /// cp, ep, dp, replica as far as they are above 1: the ranks whose gradients are averaged. Of experts: without ep.
    std::vector<plan::Axis> data_axes(GradientSum sum = GradientSum::none) const;
    std::vector<plan::Axis> shard_axes(GradientSum sum = GradientSum::none) const;  ///< without replica
    int extent(const std::vector<plan::Axis>& axes) const;

private:
    TensorId model_input(const Chunk& chunk, int number, plan::Spread spread) const;
    std::map<std::string, CommunicationLane> lanes_;
    StreamId input_stream_;
};

/// This rank's part of a parameter.
Shape local_shape(const Assembly& a, model::ParameterId id);
/// Elements of a tensor over its last extent.
std::int64_t rows_of(const Tensor& tensor);

}  // namespace lockstep::step
