// Reads a model that a file writes out layer by layer.
#pragma once

#include <string>

#include "config/document.hpp"
#include "model/model.hpp"

namespace lockstep::model {

/// Reads `input` or `inputs`, `blocks` and `layers` of a model document. An input is an image [c, h, w] or
/// {tokens: length, vocab: size}; `inputs` maps names to these, `input` is one named "input".
/// All errors go to the diagnostics; the model is whole only when there are none.
Model read_dag(config::Object& document, const std::string& name);

}  // namespace lockstep::model
