// A step that is one collective, in the figures of nccl-tests.
#pragma once

#include <optional>

#include "base/collective.hpp"
#include "base/dtype.hpp"
#include "base/units.hpp"
#include "step/graph.hpp"

namespace lockstep::analysis {

struct CollectiveFindings {
    CollectiveKind kind = CollectiveKind::all_reduce;
    DType dtype = DType::fp32;
    Bytes buffer;              ///< as nccl-tests count it: see cost::buffer_bytes
    Seconds time;              ///< median of a step
    Bandwidth algorithm, bus;  ///< buffer / time, and that times bus_factor
};

/// None when the step does anything else.
std::optional<CollectiveFindings> find_collective(const step::StepGraph& graph, Seconds time);

}  // namespace lockstep::analysis
