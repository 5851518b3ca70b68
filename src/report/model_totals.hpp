// Sums over the layers of a model that both its table and its JSON show.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "model/model.hpp"

namespace lockstep::report {

struct ModelTotals {
    Flops forward, backward;
    Bytes forward_bytes, backward_bytes;
    std::int64_t activations = 0;  ///< elements that leave convolutions and linear layers, of one sample
};

/// Costs of all layers for `batch` samples, in order. Throws InputError for a batch below 1.
std::vector<model::LayerCost> costs_of(const model::Model& model, std::int64_t batch, DType dtype);
ModelTotals totals_of(const model::Model& model, const std::vector<model::LayerCost>& costs);
/// Parameters that each layer is the first to use; a tied weight counts where it was first.
std::vector<std::int64_t> own_parameters(const model::Model& model);

}  // namespace lockstep::report
