// Encoders of the BERT kind with the masked-language-model head, described by their sizes.
#pragma once

#include <string>

#include "config/document.hpp"
#include "model/model.hpp"
#include "model/transformer.hpp"

namespace lockstep::model {

/// Reads the mapping under `bert:` of a model file: layers, hidden, heads, ffn (default 4 hidden), vocab, seq_len,
/// positions (default seq_len), dropout, epsilon, head_dim. Errors go to the diagnostics.
Transformer read_bert(const config::Node& node, config::Diagnostics& diagnostics);

/// Post-norm blocks (Devlin et al. 2018): norm(x + attention(x)), norm(x + mlp(x)), over token, segment and position
/// embeddings; the masked-language-model head is dense, gelu, layer norm, and the tied token embedding with a bias. The
/// loss takes every position (a masked share changes labels, not work). Throws InputError beyond the limits.
Model build_bert(const std::string& name, const Transformer& sizes);

}  // namespace lockstep::model
