// Writes out the blocks and repetitions of a model file: what remains is a flat list of layers with full names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/document.hpp"

namespace lockstep::model {

/// A layer as written, its block parameters filled in. Names are full ("layer1.0.conv2").
struct FlatLayer {
    std::string name;
    config::Node node;
    std::vector<std::string> inputs;  ///< of layers, block uses or model inputs
    std::string tied_to;              ///< layer whose weight is shared; "" is none
    int repeat_group = -1;            ///< which use of a block at the top level
    bool readable = true;             ///< false: something was reported already
};

struct FlatModel {
    std::vector<FlatLayer> layers;
    bool is_cut = false;  ///< the limit of layers was reached, and reported
    std::map<std::string, std::string>
        outputs;  ///< block uses and repeated layers -> the layer (or use) that ends them
};

/// Expands `layers`, a sequence of {op, ...} and {block, with, ...}, each with optional name, in, repeat and first.
/// `in` defaults to what comes before, in a block's first layer to the block's input; `$p` is parameter p of the block;
/// in a block a name is one of its own layers, and with a slash before it (`/encoder`) one of the model's. `blocks`
/// maps names to {parameters: {p: default or nothing}, layers: [...]}. `inputs` are the model's. Reports unknown blocks
/// and parameters, names used twice, blocks within themselves and more than 1e6 layers.
FlatModel expand_blocks(const config::Node& layers, const config::Node& blocks, const std::vector<std::string>& inputs,
                        config::Diagnostics& diagnostics);

}  // namespace lockstep::model
