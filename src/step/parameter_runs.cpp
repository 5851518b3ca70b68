#include "step/parameter_runs.hpp"

#include <algorithm>

namespace lockstep::step {

namespace {

/// Runs of a tensor that is one parameter's.
class RunFinder {
public:
    RunFinder(const StepGraph& graph, const Tensor& tensor, int rank)
        : tensor_(tensor),
          global_(global_shape(tensor, graph.mesh)),
          dimensions_(shard_runs(tensor, graph.mesh, rank)) {}

    std::vector<ParameterRun> find() {
        descend(0, 0, 0);
        return std::move(runs_);
    }

private:
    void descend(std::size_t dimension, std::int64_t local, std::int64_t global) {
        if (dimension == dimensions_.size()) return append(local, global);
        for (const IndexRun& run : dimensions_[dimension])
            for (std::int64_t i = 0; i < run.count; ++i)
                descend(dimension + 1, local * tensor_.shape[dimension] + run.local + i,
                        global * global_[dimension] + run.global + i);
    }
    void append(std::int64_t local, std::int64_t global) {
        if (!runs_.empty() && runs_.back().local + runs_.back().count == local &&
            runs_.back().global + runs_.back().count == global)
            ++runs_.back().count;
        else
            runs_.push_back({tensor_.parameter, local, global, 1});
    }

    const Tensor& tensor_;
    Shape global_;
    std::vector<std::vector<IndexRun>> dimensions_;
    std::vector<ParameterRun> runs_;
};

}  // namespace

std::vector<ParameterRun> parameter_runs(const StepGraph& graph, TensorId id, int rank) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.parameter.is_valid()) return RunFinder(graph, tensor, rank).find();
    std::vector<ParameterRun> runs;
    if (!tensor.part_of.is_valid()) return runs;
    const IndexRun mine = shard_runs(tensor, graph.mesh, rank)[0].front();
    for (const Tensor& view : graph.tensors) {
        if (!view.view || view.view->of != tensor.part_of || !view.parameter.is_valid()) continue;
        const std::int64_t first = view.view->first_element;
        for (ParameterRun run : RunFinder(graph, view, rank).find()) {
            const std::int64_t begin = std::max(first + run.local, mine.global);
            const std::int64_t end = std::min(first + run.local + run.count, mine.global + mine.count);
            if (begin >= end) continue;
            run.global += begin - (first + run.local);
            run.local = begin - mine.global;
            run.count = end - begin;
            runs.push_back(run);
        }
    }
    return runs;
}

std::vector<TensorId> reduced_gradients_of(const StepGraph& graph, const RankClass& rank_class) {
    std::vector<bool> is_read(graph.tensors.size(), false);
    for (const Issue& issue : rank_class.program.issues)
        for (const Op& op : graph.block(issue.block).ops) {
            const auto* compute = std::get_if<Compute>(&op.kind);
            if (compute == nullptr || !std::holds_alternative<OptimizerUpdate>(*compute)) continue;
            for (const TensorId id : op.in) is_read[id.index()] = true;
        }
    std::vector<TensorId> mine;
    std::copy_if(graph.reduced_gradients.begin(), graph.reduced_gradients.end(), std::back_inserter(mine),
                 [&](TensorId id) { return is_read[id.index()]; });
    return mine;
}

}  // namespace lockstep::step
