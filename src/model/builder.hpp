// Puts a model together layer by layer: works out shapes, makes parameters, keeps the limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "model/shape_rule.hpp"

namespace lockstep::model {

/// Where a layer's input comes from: a layer, or (id invalid) one of the model's inputs.
struct Feed {
    LayerId layer;
    int model_input = 0;
    Feed(LayerId id) : layer(id) {}
    static Feed from_input(int index) {
        Feed feed{LayerId{}};
        feed.model_input = index;
        return feed;
    }
};

struct LayerOptions {
    std::optional<double> init_scale = std::nullopt;  ///< none: by kind (see parameters_of)
    std::optional<ParameterId> tied_weight = std::nullopt;
    bool trainable = true;
    int repeat_group = -1;
};

/// Parameters of a kind in the order weight, bias | scale, shift, named LAYER.weight, LAYER.bias as PyTorch does.
/// Default starts: convolution sqrt(2 / (out kernel^2)) (He et al. 2015, fan out), linear 1 / sqrt(3 in) (the variance
/// of PyTorch's uniform default; of each expert too), embeddings 0.02.
std::vector<Parameter> parameters_of(const std::string& layer, const LayerKind& kind,
                                     std::optional<double> init_scale = std::nullopt);

class ModelBuilder {
public:
    explicit ModelBuilder(std::string name) { model_.name = std::move(name); }

    int add_input(Input input);
    /// Appends a layer. Throws InputError, naming the layer and what feeds it, when shapes, a tied weight or the limits
    /// (1e6 layers, 1e15 parameters) don't fit.
    LayerId add(std::string name, LayerKind kind, const std::vector<Feed>& feeds, const LayerOptions& options = {});

    Source source(const Feed& feed) const;
    const Model& model() const { return model_; }
    Model take() { return std::move(model_); }

private:
    void add_parameters(Layer& layer, const LayerOptions& options);
    Model model_;
    std::int64_t parameter_elements_ = 0;
    std::int64_t multiply_adds_ = 0;
};

}  // namespace lockstep::model
