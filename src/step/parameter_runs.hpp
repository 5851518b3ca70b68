// Which elements of the model's parameters a rank's tensors hold.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// `count` consecutive elements: of a rank's tensor from `local` on, of the whole parameter (row-major) from `global`
/// on.
struct ParameterRun {
    model::ParameterId parameter;
    std::int64_t local = 0, global = 0, count = 0;
};

/// The elements of a tensor that belongs to a parameter (its value, gradient or state), or that is a part of a flat
/// tensor whose views do; padding is left out. Row-major, whatever the layout in memory.
std::vector<ParameterRun> parameter_runs(const StepGraph& graph, TensorId tensor, int rank);

/// The reduced gradients that a class's optimizer reads, in the order of StepGraph::reduced_gradients.
std::vector<TensorId> reduced_gradients_of(const StepGraph& graph, const RankClass& rank_class);

}  // namespace lockstep::step
