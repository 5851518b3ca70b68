#include "plan/tensor_split.hpp"

namespace lockstep::plan {

namespace {

constexpr std::int32_t several = -2;
constexpr std::int32_t nobody = -1;

/// The one layer that reads each layer's output.
std::vector<std::int32_t> only_readers(const model::Model& model) {
    std::vector<std::int32_t> readers(model.layers.size(), nobody);
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        for (const model::LayerId from : model.layers[i].inputs) {
            if (!from.is_valid()) continue;
            std::int32_t& reader = readers[from.index()];
            reader = reader == nobody ? static_cast<std::int32_t>(i) : several;
        }
    return readers;
}

bool keeps_features_apart(const model::LayerKind& kind) {
    return std::holds_alternative<model::Activation>(kind) || std::holds_alternative<model::GatedActivation>(kind) ||
           std::holds_alternative<model::Rotary>(kind) || std::holds_alternative<model::Attention>(kind);
}

class Splitter {
public:
    Splitter(const model::Model& model, int tp, bool sequence_parallel)
        : model_(model),
          tp_(tp),
          between_(sequence_parallel ? Spread::sequence : Spread::whole),
          readers_(only_readers(model)),
          splits_(model.layers.size()) {}

    std::vector<LayerSplit> run() {
        for (std::size_t i = 0; i < splits_.size(); ++i) splits_[i].input = splits_[i].output = between_;
        for (std::size_t i = 0; i < splits_.size(); ++i) {
            const model::LayerKind& kind = model_.layers[i].kind;
            if (std::holds_alternative<model::Linear>(kind) && splits_[i].weights == WeightSplit::whole) pair(i);
            if (const auto* embedding = std::get_if<model::Embedding>(&kind)) split(*embedding, splits_[i]);
        }
        return std::move(splits_);
    }

private:
    /// Follows the output of a linear layer to the end of its pair.
    void pair(std::size_t first) {
        std::vector<std::size_t> inside;
        std::int32_t at = readers_[first];
        while (at >= 0 && keeps_features_apart(model_.layers[static_cast<std::size_t>(at)].kind)) {
            inside.push_back(static_cast<std::size_t>(at));
            at = readers_[static_cast<std::size_t>(at)];
        }
        if (at < 0) return;
        const auto last = static_cast<std::size_t>(at);
        const model::LayerKind& end = model_.layers[last].kind;
        const bool is_linear = std::holds_alternative<model::Linear>(end);
        if (!is_linear && !std::holds_alternative<model::SoftmaxLoss>(end)) return;
        splits_[first] = {WeightSplit::columns, Spread::whole, Spread::features};
        for (const std::size_t i : inside) splits_[i].input = splits_[i].output = Spread::features;
        splits_[last].input = Spread::features;
        if (is_linear) splits_[last].weights = WeightSplit::rows;
    }
    void split(const model::Embedding& embedding, LayerSplit& split) const {
        if (embedding.vocab % tp_ != 0 || embedding.vocab / tp_ < least_vocabulary_part) return;
        split.weights = WeightSplit::vocabulary;
        split.input = Spread::whole;
    }

    const model::Model& model_;
    int tp_;
    Spread between_;
    std::vector<std::int32_t> readers_;
    std::vector<LayerSplit> splits_;
};

}  // namespace

std::vector<LayerSplit> split_layers(const model::Model& model, int tp, bool sequence_parallel) {
    if (tp == 1) return std::vector<LayerSplit>(model.layers.size());
    return Splitter(model, tp, sequence_parallel).run();
}

}  // namespace lockstep::plan
