// What an experiment is when its file doesn't say.
#pragma once

#include <string_view>

#include "config/document.hpp"
#include "model/model.hpp"
#include "plan/plan.hpp"

namespace lockstep::experiment {

inline constexpr std::string_view default_origin = "default";
inline constexpr std::string_view model_origin = "default of the model";

/// The document with the keys that are absent and whose default depends on nothing else; they stand at
/// `default_origin`.
config::Node with_defaults(const config::Node& document);

/// sgd-momentum for images, adam for sequences: what their published recipes use.
plan::Optimizer default_optimizer(const model::Model& model);

}  // namespace lockstep::experiment
