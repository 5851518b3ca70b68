// A model: a directed acyclic graph of layers that ends in a loss, read from models/ or a user's file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "config/data_path.hpp"
#include "config/document.hpp"
#include "model/layer.hpp"

namespace lockstep::model {

/// What a sample brings: an image [c, h, w], or ids [s] below `vocab`.
struct Input {
    enum class Kind { image, tokens } kind = Kind::image;
    std::string name = "input";
    Shape shape;             ///< per sample
    std::int64_t vocab = 0;  ///< of tokens
};

struct Model {
    std::string name;
    std::string sample_unit = "images";  ///< what throughput counts: "images" or "sequences"
    std::vector<Input> inputs;
    std::vector<Layer> layers;          ///< in an order in which every input comes before its use; the last is the loss
    std::vector<Parameter> parameters;  ///< each once, tied ones too, in order of first use
    std::int64_t lora_rank = 0;         ///< of its low-rank adapters; 0: it has none
    std::vector<std::string> sources;
    std::filesystem::path file;

    const Layer& layer(LayerId id) const { return layers[id.index()]; }
    std::int64_t parameter_count() const;
    bool has_batch_norm() const;
    bool has_experts() const;
    bool has_memory() const;                 ///< attention to a memory or to relative positions
    std::int64_t tokens_per_sample() const;  ///< sequence length, or 0 for images
};

/// Whether a gradient has to reach the layer's inputs: some layer before it has a trainable parameter.
bool needs_input_gradient(const Model& model, const Layer& layer);

/// Why no executor computes the model ("only the simulator takes its layer 'se.scale' (channel_scale)"); empty: it can
/// be run.
std::string why_only_simulated(const Model& model);

/// Cost of a layer for `batch` samples with activations and weights of `dtype` and ids of 4 bytes. Attention counts all
/// scores, causal or not (a kernel that skips the masked half does about half). Backward data is 0 where no gradient is
/// needed, backward weights where nothing trains. Not counted: adding gradients where a layer feeds several, dropout
/// masks (made again by counter), scores computed again. Throws InputError when the multiply-adds leave 64 bits.
LayerCost cost_of(const Model& model, const Layer& layer, std::int64_t batch, DType dtype);
/// Multiply-adds of the forward pass of one sample (convolutions, matrix products, full attention; look-ups excluded).
/// Of experts those of each token's top_k count, whatever is dropped, and nothing for rows that only fill a buffer:
/// what a step's MFU is measured by.
std::int64_t forward_multiply_adds(const Model& model);

/// A model by name or path. Throws InputError with all errors of the file: unknown layers, cycles, shapes that don't
/// fit.
Model load_model(const config::DataPath& data, std::string_view name_or_path);
/// As in an experiment: a name, a path, or {base: gpt-small, seq_len: 2048, layers: 24 ...} that overrides
/// hyper-parameters of a parameterised model (gpt, bert).
Model load_model(const config::DataPath& data, const config::Node& node, config::Diagnostics& diagnostics);
Model read_model(const config::Node& document, config::Diagnostics& diagnostics);
std::vector<std::string> model_names(const config::DataPath& data);

}  // namespace lockstep::model
