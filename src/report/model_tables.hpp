// Models as tables for the terminal and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "config/json.hpp"
#include "model/model.hpp"

namespace lockstep::report {

/// One line a model: input, layers, parameters, multiply-adds of a sample's forward pass.
std::string format_model_list(const std::vector<model::Model>& models);

/// The same as an array: name, file, sample unit, parameters, multiply-adds.
config::Json model_list_json(const std::vector<model::Model>& models);

/// The layers with output shapes, parameters, flops and least bytes of a forward and backward pass over `batch` samples
/// in `dtype`, then totals with the figures papers quote. Equal blocks in a row are shown once ("x80"), each row then
/// being one block's; totals count all of them. At most 110 columns. Throws InputError for a batch below 1.
std::string format_model(const model::Model& model, std::int64_t batch, DType dtype);

/// The same, every layer written out: {"name", "file", "sources", "sample_unit", "batch", "dtype", "inputs",
/// "parameters", "multiply_adds", "activations", "layers": [...], "totals": {...}}. flops and bytes are for the batch,
/// multiply_adds and activations (outputs of convolutions and linear layers, in elements) for one sample.
config::Json model_json(const model::Model& model, std::int64_t batch, DType dtype);

}  // namespace lockstep::report
