// --check=numeric: a step of the split model gives the loss and the gradients of the unsplit one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "step/executor.hpp"
#include "step/graph.hpp"
#include "world/world.hpp"

namespace lockstep::drive {

/// Makes an executor over a world; the check needs one for the split and one for the unsplit model.
using MakeExecutor = std::function<std::unique_ptr<step::Executor>(world::World&)>;

struct NumericReport {
    double loss_split = 0;
    double loss_unsplit = 0;
    double worst_relative_l2 = 0;
    std::string worst_gradient;  ///< name of the unsplit tensor
    std::size_t gradients = 0;
};

/// Collective. Runs one step of `split` on all ranks and one of `unsplit` (the same global batch in one rank) on rank
/// 0, and compares what the ranks hold of each gradient, every copy of it, with the unsplit one. Throws RuntimeError
/// naming the tensor when the loss or a reduced gradient differs by more than `limit`.
NumericReport check_numeric(world::World& world, const MakeExecutor& make_executor, const step::StepGraph& split,
                            const step::StepGraph& unsplit, double limit = 1e-4);

}  // namespace lockstep::drive
