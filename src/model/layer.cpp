#include "model/layer.hpp"

namespace lockstep::model {

namespace {

struct KindName {
    std::string_view operator()(const Convolution&) const { return "convolution"; }
    std::string_view operator()(const Linear&) const { return "linear"; }
    std::string_view operator()(const Norm& norm) const {
        switch (norm.kind) {
            case Norm::Kind::batch: return "batch_norm";
            case Norm::Kind::layer: return "layer_norm";
            case Norm::Kind::rms: return "rms_norm";
        }
        return "?";
    }
    std::string_view operator()(const Activation& activation) const {
        switch (activation.kind) {
            case Activation::Kind::relu: return "relu";
            case Activation::Kind::gelu: return "gelu";
            case Activation::Kind::silu: return "silu";
            case Activation::Kind::tanh: return "tanh";
            case Activation::Kind::sigmoid: return "sigmoid";
        }
        return "?";
    }
    std::string_view operator()(const GatedActivation&) const { return "gated_silu"; }
    std::string_view operator()(const Pool& pool) const {
        if (pool.kind == Pool::Kind::max) return pool.kernel == 0 ? "global_max_pool" : "max_pool";
        return pool.kernel == 0 ? "global_average_pool" : "average_pool";
    }
    std::string_view operator()(const Add&) const { return "add"; }
    std::string_view operator()(const ChannelScale&) const { return "channel_scale"; }
    std::string_view operator()(const Concatenate&) const { return "concatenate"; }
    std::string_view operator()(const Dropout&) const { return "dropout"; }
    std::string_view operator()(const Embedding&) const { return "embedding"; }
    std::string_view operator()(const PositionEmbedding&) const { return "position_embedding"; }
    std::string_view operator()(const Rotary&) const { return "rotary"; }
    std::string_view operator()(const Attention&) const { return "attention"; }
    std::string_view operator()(const Flatten&) const { return "flatten"; }
    std::string_view operator()(const FirstToken&) const { return "first_token"; }
    std::string_view operator()(const Dispatch&) const { return "dispatch"; }
    std::string_view operator()(const GroupedLinear&) const { return "grouped_linear"; }
    std::string_view operator()(const Combine&) const { return "combine"; }
    std::string_view operator()(const SoftmaxLoss&) const { return "softmax_loss"; }
};

}  // namespace

std::string_view kind_name(const LayerKind& kind) { return std::visit(KindName{}, kind); }

}  // namespace lockstep::model
