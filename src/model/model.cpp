#include "model/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/cost.hpp"
#include "model/limits.hpp"

namespace lockstep::model {

std::int64_t Model::parameter_count() const {
    std::int64_t count = 0;
    for (const auto& parameter : parameters) count += parameter.elements();
    return count;
}

bool Model::has_batch_norm() const {
    return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
        const auto* norm = std::get_if<Norm>(&layer.kind);
        return norm != nullptr && norm->kind == Norm::Kind::batch;
    });
}

bool Model::has_experts() const {
    return std::any_of(layers.begin(), layers.end(),
                       [](const Layer& layer) { return std::holds_alternative<Dispatch>(layer.kind); });
}

bool Model::has_memory() const {
    return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
        const auto* attention = std::get_if<Attention>(&layer.kind);
        return attention != nullptr && (attention->memory > 0 || attention->relative);
    });
}

std::int64_t Model::tokens_per_sample() const {
    if (inputs.empty() || inputs.front().kind != Input::Kind::tokens) return 0;
    return inputs.front().shape[0];
}

bool needs_input_gradient(const Model& model, const Layer& layer) {
    // Usually the first layer looked at answers; the set of seen ones keeps odd graphs linear.
    std::vector<LayerId> open;
    std::vector<LayerId> seen;
    auto push = [&](const Layer& from) {
        for (auto id : from.inputs) {
            if (!id.is_valid()) continue;
            const auto place = std::lower_bound(seen.begin(), seen.end(), id);
            if (place != seen.end() && *place == id) continue;
            seen.insert(place, id);
            open.push_back(id);
        }
    };
    push(layer);
    while (!open.empty()) {
        const Layer& before = model.layer(open.back());
        open.pop_back();
        for (auto id : before.parameters)
            if (model.parameters[id.index()].trainable) return true;
        push(before);
    }
    return false;
}

namespace {

bool has_kernels(const LayerKind& kind) {
    if (std::holds_alternative<ChannelScale>(kind)) return false;
    if (const auto* activation = std::get_if<Activation>(&kind)) return activation->kind != Activation::Kind::sigmoid;
    const auto* attention = std::get_if<Attention>(&kind);
    return attention == nullptr || (attention->memory == 0 && !attention->relative);
}

}  // namespace

std::string why_only_simulated(const Model& model) {
    const auto layer = std::ranges::find_if(model.layers, [](const Layer& l) { return !has_kernels(l.kind); });
    if (layer == model.layers.end()) return "";
    const bool is_attention = std::holds_alternative<Attention>(layer->kind);
    return fmt::format("only the simulator takes its layer '{}' ({}{})", layer->name, kind_name(layer->kind),
                       is_attention ? " with a memory or relative positions" : "");
}

std::int64_t forward_multiply_adds(const Model& model) {
    std::int64_t sum = 0;
    for (const auto& layer : model.layers) sum = checked_sum(sum, multiply_adds_per_sample(layer));
    return sum;
}

}  // namespace lockstep::model
