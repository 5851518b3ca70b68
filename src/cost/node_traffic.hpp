// What a communicator's ranks on one node do to the node's links.
#pragma once

#include <vector>

#include "cost/node_links.hpp"

namespace lockstep::cost {

/// Of given GPUs of a node. Shares are for each byte that every rank of the communicator sends.
struct NodeTraffic {
    Bandwidth channels;                ///< all ring channels together; 0 for one GPU
    bool is_on_nvlink = false;         ///< every hop of these rings
    double pair_seconds_per_byte = 0;  ///< each GPU to each other one, one byte a pair
    Loads ring;                        ///< the channels' links inside the node; each channel carries its part
    Loads pairs;                       ///< one byte from each GPU to each other one
    Loads leaving, entering;  ///< one byte in all, spread evenly over the NICs of these GPUs, and the way there
    std::vector<std::vector<int>> nics;  ///< of each GPU
};

NodeTraffic find_traffic(const NodeLinks& links, const std::vector<int>& gpus);

}  // namespace lockstep::cost
