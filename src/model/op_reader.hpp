// Reads one layer of a model file: its `op` and that op's attributes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "model/builder.hpp"

namespace lockstep::model {

/// Names a layer may have as `op`, sorted.
const std::vector<std::string>& op_names();

struct ReadOp {
    LayerKind kind;
    LayerOptions options;
};

/// Reads `op` and its attributes. What follows from the input is not written (channels, features, classes, head_dim).
/// Returns none when something was reported: an unknown op, key or value.
std::optional<ReadOp> read_op(config::Object& layer, const std::vector<Source>& sources);

}  // namespace lockstep::model
