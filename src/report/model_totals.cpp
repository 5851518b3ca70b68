#include "report/model_totals.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::report {

std::vector<model::LayerCost> costs_of(const model::Model& model, std::int64_t batch, DType dtype) {
    if (batch < 1) throw InputError(fmt::format("a batch of {} has no samples; use 1 or more", batch));
    std::vector<model::LayerCost> costs;
    costs.reserve(model.layers.size());
    for (const auto& layer : model.layers) costs.push_back(model::cost_of(model, layer, batch, dtype));
    return costs;
}

ModelTotals totals_of(const model::Model& model, const std::vector<model::LayerCost>& costs) {
    ModelTotals totals;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        totals.forward += costs[i].forward;
        totals.backward += costs[i].backward_data + costs[i].backward_weights;
        totals.forward_bytes += costs[i].forward_bytes;
        totals.backward_bytes += costs[i].backward_bytes;
        const auto& kind = model.layers[i].kind;
        if (std::holds_alternative<model::Convolution>(kind) || std::holds_alternative<model::Linear>(kind) ||
            std::holds_alternative<model::GroupedLinear>(kind))
            totals.activations += model.layers[i].output.elements();
    }
    return totals;
}

std::vector<std::int64_t> own_parameters(const model::Model& model) {
    std::vector<bool> is_counted(model.parameters.size(), false);
    std::vector<std::int64_t> counts;
    for (const auto& layer : model.layers) {
        std::int64_t count = 0;
        for (auto id : layer.parameters) {
            if (!is_counted[id.index()]) count += model.parameters[id.index()].elements();
            is_counted[id.index()] = true;
        }
        counts.push_back(count);
    }
    return counts;
}

}  // namespace lockstep::report
