// In which order a tensor's elements are stored.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernel.hpp"
#include "step/graph.hpp"

namespace lockstep::cpu {

/// Physical order of each tensor of a graph. Activations that the graph has as channels_last are stored in blocks of 8
/// channels where the processor's convolutions are faster that way (measured on AVX2: 3x3 convolutions 1.2 to 2 times)
/// and every op that touches them can work on them.
std::vector<Order> choose_orders(const step::StepGraph& graph);

/// Position in memory of the element with this row-major index; `shape` has 4 extents unless the order is row-major.
std::int64_t stored_at(Order order, const Shape& shape, std::int64_t row_major_index);

}  // namespace lockstep::cpu
