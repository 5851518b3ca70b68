// One layer of a model: what it is, its shapes per sample, its parameters, and what a pass through it costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/shape.hpp"
#include "base/units.hpp"

namespace lockstep::model {

/// Input [c, h, w] -> [out_channels, h', w'], h' = (h + 2 padding - kernel) / stride + 1. Weight [out, in / groups,
/// kernel, kernel], bias [out].
struct Convolution {
    std::int64_t in_channels = 0, out_channels = 0;
    std::int64_t kernel = 1, stride = 1, padding = 0, groups = 1;
    bool bias = false;
    /// Of a kernel that isn't square, whose height and vertical padding are the above; 0: as wide as it is high.
    std::int64_t kernel_width = 0, padding_width = 0;
    std::int64_t width() const { return kernel_width > 0 ? kernel_width : kernel; }
    std::int64_t horizontal_padding() const { return kernel_width > 0 ? padding_width : padding; }
    bool operator==(const Convolution&) const = default;
};
/// Input [..., in] -> [..., out]. Weight [out, in], bias [out].
struct Linear {
    std::int64_t in_features = 0, out_features = 0;
    bool bias = true;
    bool operator==(const Linear&) const = default;
};
/// Batch norm over the channels of [c, h, w]; layer norm and RMS norm over the last extent. Scale [features] and,
/// unless RMS, shift [features]. Batch norm also keeps running mean and variance (buffers, not parameters).
struct Norm {
    enum class Kind { batch, layer, rms } kind = Kind::layer;
    std::int64_t features = 0;
    double epsilon = 1e-5;
    bool operator==(const Norm&) const = default;
};
struct Activation {
    enum class Kind { relu, gelu, silu, tanh, sigmoid } kind = Kind::relu;
    bool operator==(const Activation&) const = default;
};
/// Input [..., 2 features] = (gate, up) -> [..., features]: silu(gate) * up.
struct GatedActivation {
    std::int64_t features = 0;
    bool operator==(const GatedActivation&) const = default;
};
struct Pool {
    enum class Kind { max, average } kind = Kind::max;
    std::int64_t kernel = 2, stride = 2, padding = 0;  ///< kernel 0: global, output [c, 1, 1]
    bool operator==(const Pool&) const = default;
};
/// Sum of two inputs of equal shape.
struct Add {
    bool operator==(const Add&) const = default;
};
/// Inputs [c, h, w] and [c, 1, 1]: each channel times its factor (squeeze and excitation, Hu et al. 2018).
struct ChannelScale {
    bool operator==(const ChannelScale&) const = default;
};
/// Two inputs or more that differ in one extent alone, side by side in it: channels of [c, h, w], features of
/// [s, features] in `blocks` equal parts (block 0 of the first input, block 0 of the second ..., block 1 ...), so that
/// queries of one layer and keys and values of another become what attention reads.
struct Concatenate {
    std::int64_t blocks = 1;
    bool operator==(const Concatenate&) const = default;
};
struct Dropout {
    double probability = 0.1;
    bool operator==(const Dropout&) const = default;
};
/// Token (or segment) ids [s] -> [s, hidden]. Weight [vocab, hidden].
struct Embedding {
    std::int64_t vocab = 0, hidden = 0;
    bool operator==(const Embedding&) const = default;
};
/// Adds a learned table [positions, hidden] to [s, hidden].
struct PositionEmbedding {
    std::int64_t positions = 0, hidden = 0;
    bool operator==(const PositionEmbedding&) const = default;
};
/// Rotates queries and keys inside [s, (heads + 2 kv_heads) head_dim] by position.
struct Rotary {
    std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
    double theta = 10000;
    bool operator==(const Rotary&) const = default;
};
/// Input [s, (heads + 2 kv_heads) head_dim] = queries, keys, values -> [s, heads head_dim]; softmax(q k^T /
/// sqrt(head_dim)) v.
struct Attention {
    std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
    bool causal = true;
    double dropout = 0;  ///< of the probabilities
    /// Positions of an earlier segment, whose keys and values are read too: a second input [memory, (heads + 2
    /// kv_heads) head_dim] (Dai et al. 2019, Transformer-XL).
    std::int64_t memory = 0;
    bool relative = false;  ///< scores have a second product, of queries with relative positions (the same paper)
    bool operator==(const Attention&) const = default;
};
/// Keeps the element count, makes it one extent.
struct Flatten {
    bool operator==(const Flatten&) const = default;
};
/// Takes position 0 of [s, hidden] -> [hidden] (BERT's pooler).
struct FirstToken {
    bool operator==(const FirstToken&) const = default;
};
/// Input [s, hidden] -> [s top_k, hidden]: each token's row for each of its top_k experts, as many rows as are wanted
/// in all. Who goes where is synthetic (step/expert_rows.hpp): the router's weights decide how much, not where to.
struct Dispatch {
    std::int64_t experts = 0, top_k = 1;
    /// An expert takes at most capacity x tokens top_k / experts rows of a pass on a rank and drops the rest (Lepikhin
    /// et al. 2020); 0: all.
    double capacity = 0;
    double imbalance =
        0;  ///< the fullest experts are wanted by 1 + imbalance times the mean; at most experts / top_k - 1
    bool operator==(const Dispatch&) const = default;
};
/// Of experts' rows: input [rows, in] -> [rows, out], by the weight of the row's expert. Weight [experts, out, in]; no
/// bias, which grouped products don't take.
struct GroupedLinear {
    std::int64_t experts = 0, in_features = 0, out_features = 0;
    bool operator==(const GroupedLinear&) const = default;
};
/// Inputs experts' rows [s top_k, hidden] and the router's logits [s, experts] -> [s, hidden]: the sum of a token's
/// rows, each weighted by its expert's share of the softmax over all experts (Fedus et al. 2021); dropped rows add
/// nothing.
struct Combine {
    std::int64_t experts = 0;
    bool operator==(const Combine&) const = default;
};
/// Mean cross entropy of [classes] or [s, classes] against labels. The last layer of a model.
struct SoftmaxLoss {
    std::int64_t classes = 0;
    bool operator==(const SoftmaxLoss&) const = default;
};

using LayerKind = std::variant<Convolution, Linear, Norm, Activation, GatedActivation, Pool, Add, ChannelScale,
                               Concatenate, Dropout, Embedding, PositionEmbedding, Rotary, Attention, Flatten,
                               FirstToken, Dispatch, GroupedLinear, Combine, SoftmaxLoss>;
std::string_view kind_name(
    const LayerKind& kind);  ///< as in model files: "convolution", "batch_norm", "layer_norm", "relu" ...

enum class ParameterRole { weight, bias, norm_scale, norm_shift, embedding, position };

struct Parameter {
    std::string name;  ///< "layer1.0.conv1.weight"
    Shape shape;
    ParameterRole role = ParameterRole::weight;
    double init_scale = 0.02;  ///< standard deviation of a normal start; norms start at 1, biases and shifts at 0
    bool trainable = true;
    std::int64_t elements() const { return shape.elements(); }
};
using ParameterId = Id<Parameter>;

struct Layer;
using LayerId = Id<Layer>;

/// Inputs are layers, or the model's input when the id is invalid.
struct Layer {
    std::string name;
    LayerKind kind;
    std::vector<LayerId> inputs;
    int model_input = 0;  ///< which of Model::inputs an invalid input id means
    Shape input;          ///< of the first input, per sample
    Shape output;         ///< per sample; the loss has []
    std::vector<ParameterId>
        parameters;    ///< in the order: weight, bias | scale, shift; a tied weight is another layer's id
    LayerId dispatch;  ///< whose rows of experts its output holds; invalid: none
    int repeat_group =
        -1;  ///< which transformer (or residual) block it is part of; -1: none. Pipeline stages cut between groups
};

/// Work of one layer for a whole batch. A multiply-add is 2 flops.
struct LayerCost {
    Flops forward, backward_data, backward_weights;
    Bytes forward_bytes, backward_bytes;  ///< least traffic: each input, output and parameter once
    std::int64_t multiply_adds = 0;  ///< of convolutions and matrix products in the forward pass (look-ups excluded)
};

}  // namespace lockstep::model
