// The different communications of a step graph: what is one flow on the same links, whatever its size.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::sim {

/// A shape: collectives of one communicator that move alike (in a ring, or pair by pair), or messages to the same peers
/// with tensors of the same sizes.
struct Shapes {
    std::vector<step::OpInstance> all;                ///< the first op of each shape
    std::vector<std::int32_t> of_op;                  ///< by op number; -1: no communication
    std::vector<std::vector<std::int32_t>> of_class;  ///< by rank class, ascending

    const step::OpInstance& example(std::int32_t shape) const { return all[static_cast<std::size_t>(shape)]; }
    bool is_collective(std::int32_t shape) const {
        return std::holds_alternative<step::Collective>(example(shape).op->kind);
    }
    const step::Collective& collective(std::int32_t shape) const {
        return std::get<step::Collective>(example(shape).op->kind);
    }
    const step::P2PGroup& messages(std::int32_t shape) const {
        return std::get<step::P2PGroup>(example(shape).op->kind);
    }
};

Shapes find_shapes(const step::StepGraph& graph);

}  // namespace lockstep::sim
