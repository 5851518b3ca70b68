// Which shapes a layer accepts and which it gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shape.hpp"
#include "model/layer.hpp"

namespace lockstep::model {

/// What flows into a layer, for one sample. `vocab` > 0: these are ids below it, not numbers.
struct Source {
    std::string name;
    Shape shape;
    std::int64_t vocab = 0;
    LayerId dispatch = {};     ///< these are the rows of its experts
    std::int64_t experts = 0;  ///< of that layer
};

/// Shape of one sample that leaves a layer of this kind; rules as written at the kinds in layer.hpp.
/// Rows of experts go through grouped_linear, activations and gated_silu to combine, and nothing else goes there.
/// Throws InputError that names the sources and their shapes when they don't fit.
Shape output_shape(const LayerKind& kind, const std::vector<Source>& sources);

}  // namespace lockstep::model
