#include "model/builder.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "model/cost.hpp"
#include "model/limits.hpp"

namespace lockstep::model {

namespace {

struct MakeParameters {
    const std::string& layer;
    std::optional<double> init;

    Parameter weight(Shape shape, ParameterRole role, double scale) const {
        return {layer + ".weight", std::move(shape), role, init.value_or(scale), true};
    }
    Parameter bias(std::int64_t size, ParameterRole role) const { return {layer + ".bias", {size}, role, 0, true}; }

    std::vector<Parameter> operator()(const Convolution& c) const {
        const double fan_out = static_cast<double>(c.out_channels) * static_cast<double>(c.kernel * c.width());
        std::vector<Parameter> all{weight({c.out_channels, c.in_channels / c.groups, c.kernel, c.width()},
                                          ParameterRole::weight, std::sqrt(2 / fan_out))};
        if (c.bias) all.push_back(bias(c.out_channels, ParameterRole::bias));
        return all;
    }
    std::vector<Parameter> operator()(const Linear& l) const {
        const double scale = 1 / std::sqrt(3 * static_cast<double>(l.in_features));
        std::vector<Parameter> all{weight({l.out_features, l.in_features}, ParameterRole::weight, scale)};
        if (l.bias) all.push_back(bias(l.out_features, ParameterRole::bias));
        return all;
    }
    std::vector<Parameter> operator()(const GroupedLinear& l) const {
        const double scale = 1 / std::sqrt(3 * static_cast<double>(l.in_features));
        return {weight({l.experts, l.out_features, l.in_features}, ParameterRole::weight, scale)};
    }
    std::vector<Parameter> operator()(const Norm& n) const {
        std::vector<Parameter> all{{layer + ".weight", {n.features}, ParameterRole::norm_scale, 0, true}};
        if (n.kind != Norm::Kind::rms) all.push_back(bias(n.features, ParameterRole::norm_shift));
        return all;
    }
    std::vector<Parameter> operator()(const Embedding& e) const {
        return {weight({e.vocab, e.hidden}, ParameterRole::embedding, 0.02)};
    }
    std::vector<Parameter> operator()(const PositionEmbedding& p) const {
        return {weight({p.positions, p.hidden}, ParameterRole::position, 0.02)};
    }
    template <class Other>
    std::vector<Parameter> operator()(const Other&) const {
        return {};
    }
};

}  // namespace

std::vector<Parameter> parameters_of(const std::string& layer, const LayerKind& kind,
                                     std::optional<double> init_scale) {
    return std::visit(MakeParameters{layer, init_scale}, kind);
}

int ModelBuilder::add_input(Input input) {
    model_.inputs.push_back(std::move(input));
    return static_cast<int>(model_.inputs.size()) - 1;
}

Source ModelBuilder::source(const Feed& feed) const {
    if (feed.layer.is_valid()) {
        const Layer& layer = model_.layer(feed.layer);
        Source source{layer.name, layer.output, 0, layer.dispatch, 0};
        if (layer.dispatch.is_valid()) source.experts = std::get<Dispatch>(model_.layer(layer.dispatch).kind).experts;
        return source;
    }
    const Input& input = model_.inputs.at(static_cast<std::size_t>(feed.model_input));
    return {input.name, input.shape, input.vocab, LayerId{}, 0};
}

LayerId ModelBuilder::add(std::string name, LayerKind kind, const std::vector<Feed>& feeds,
                          const LayerOptions& options) try {
    if (static_cast<std::int64_t>(model_.layers.size()) >= max_layers)
        throw InputError(fmt::format("more than {} layers; use a smaller model", max_layers));
    Layer layer;
    layer.name = name;
    layer.kind = std::move(kind);
    std::vector<Source> sources;
    for (const auto& feed : feeds) {
        sources.push_back(source(feed));
        layer.inputs.push_back(feed.layer);
        if (!feed.layer.is_valid()) layer.model_input = feed.model_input;
    }
    if (feeds.size() == 2 && !feeds[0].layer.is_valid() && !feeds[1].layer.is_valid() &&
        feeds[0].model_input != feeds[1].model_input)
        throw InputError("reads two inputs of the model directly; put a layer behind one of them");
    layer.output = output_shape(layer.kind, sources);
    layer.input = sources.front().shape;
    if (std::holds_alternative<Dispatch>(layer.kind))
        layer.dispatch = LayerId{static_cast<std::int32_t>(model_.layers.size())};
    else if (!std::holds_alternative<Combine>(layer.kind))
        layer.dispatch = sources.front().dispatch;
    layer.repeat_group = options.repeat_group;
    multiply_adds_ = checked_sum(multiply_adds_, multiply_adds_per_sample(layer));
    add_parameters(layer, options);
    model_.layers.push_back(std::move(layer));
    return LayerId{static_cast<std::int32_t>(model_.layers.size()) - 1};
} catch (const InputError& error) { throw InputError(fmt::format("layer '{}': {}", name, error.what())); }

void ModelBuilder::add_parameters(Layer& layer, const LayerOptions& options) {
    std::vector<Parameter> parameters = parameters_of(layer.name, layer.kind, options.init_scale);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        Parameter& parameter = parameters[i];
        parameter.trainable = options.trainable;
        if (i == 0 && options.tied_weight) {
            const Parameter& tied = model_.parameters[options.tied_weight->index()];
            if (tied.shape != parameter.shape)
                throw InputError(fmt::format("shapes don't fit (a weight of {} is wanted, tied to '{}' of {})",
                                             to_string(parameter.shape), tied.name, to_string(tied.shape)));
            layer.parameters.push_back(*options.tied_weight);
            continue;
        }
        parameter_elements_ += checked_elements(parameter.shape);
        if (parameter_elements_ > max_elements) throw InputError("more than 1e15 parameters; use smaller sizes");
        layer.parameters.push_back(ParameterId{static_cast<std::int32_t>(model_.parameters.size())});
        model_.parameters.push_back(std::move(parameter));
    }
}

}  // namespace lockstep::model
