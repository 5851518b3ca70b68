// Decoder-only transformers of the GPT-2 and Llama kind, described by their sizes.
#pragma once

#include <string>

#include "config/document.hpp"
#include "model/model.hpp"
#include "model/transformer.hpp"

namespace lockstep::model {

/// Reads the mapping under `gpt:` of a model file: layers, hidden, heads, kv_heads (default heads), head_dim (default
/// hidden / heads), ffn (default 4 hidden), vocab, seq_len, gated, tied, bias, norm (layer or rms), position (learned
/// or rotary), positions (default seq_len), rope_theta, dropout, epsilon, lora {rank, alpha (default rank), targets
/// (default qkv, proj, up, down)}, experts {count, top_k
/// (default 2), capacity (default 0: nothing is dropped), imbalance (default 0), every (default 1)}. Errors go to the
/// diagnostics.
Transformer read_gpt(const config::Node& node, config::Diagnostics& diagnostics);

/// Pre-norm blocks (GPT-2, Radford et al. 2019; Llama, Touvron et al. 2023): x + attention(norm(x)), x + mlp(norm(x)),
/// a last norm, an output layer without bias and the loss of every position. Throws InputError beyond the limits.
Model build_gpt(const std::string& name, const Transformer& sizes);

}  // namespace lockstep::model
