// The order in which layers of a file can be built: references resolved, cycles found, loose ends reported.
#pragma once

#include <string>
#include <vector>

#include "model/block_expansion.hpp"

namespace lockstep::model {

/// A layer with the indices of what feeds it: into FlatModel::layers, or -1 - k for model input k.
struct LinkedLayer {
    std::vector<int> feeds;
    int tied_to = -1;
    bool is_complete = true;  ///< false: some reference was unknown, and reported
};

struct LinkedModel {
    std::vector<LinkedLayer> layers;
    std::vector<int> order;  ///< indices of layers; those in or behind a cycle are left out
};

/// Reports unknown names (with the nearest known one), cycles (their layers in order), layers and inputs that nothing
/// uses, and a missing or second softmax_loss. The order is that of the file wherever the file allows it.
LinkedModel link_layers(const FlatModel& flat, const std::vector<std::string>& inputs, const config::Location& where,
                        config::Diagnostics& diagnostics);

}  // namespace lockstep::model
