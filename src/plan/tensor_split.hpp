// How tensor parallelism splits the layers of a model: which weights are cut, and how activations are spread over tp.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace lockstep::plan {

/// whole: every tp rank holds all; sequence: each holds a part of the positions; features: of the last extent.
enum class Spread { whole, sequence, features };

/// columns: the weight's output rows are split, each rank computes some features (Shoeybi et al. 2019); rows: its
/// inputs are split, the results are sums to be reduced; vocabulary: an embedding's rows are split, results are sums
/// too.
enum class WeightSplit { whole, columns, rows, vocabulary };

struct LayerSplit {
    WeightSplit weights = WeightSplit::whole;
    Spread input = Spread::whole;
    Spread output = Spread::whole;
};

/// Smallest vocabulary per rank for which an embedding is split: smaller tables (BERT's two segments) are kept whole.
inline constexpr std::int64_t least_vocabulary_part = 64;

/// By layer. A linear layer whose output reaches another linear layer through activations, gates, rotary embeddings and
/// attention alone is split by columns, that other one by rows; one that reaches the loss so is split by columns. What
/// lies between such pairs is whole, or split along the sequence. tp 1 splits nothing.
std::vector<LayerSplit> split_layers(const model::Model& model, int tp, bool sequence_parallel);

}  // namespace lockstep::plan
