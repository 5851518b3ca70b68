#include "drive/numeric_check.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "step/parameter_runs.hpp"
#include "world/agree.hpp"

namespace lockstep::drive {

namespace {

/// One step on its own executor; the loss and the executor with its values.
struct OneStep {
    std::unique_ptr<step::Executor> executor;
    double loss = 0;
};

OneStep run_one_step(world::World& world, const MakeExecutor& make_executor, const step::StepGraph& graph) {
    OneStep result{make_executor(world), 0};
    result.executor->prepare(graph);
    result.executor->enqueue(0);
    result.loss = result.executor->collect().front().loss;
    return result;
}

/// Mean over the ranks that have a loss: those of the last pipeline stage.
double mean_loss(world::World& world, double loss) {
    std::array<double, 2> sums{std::isnan(loss) ? 0 : loss, std::isnan(loss) ? 0.0 : 1.0};
    world.all_reduce(std::as_writable_bytes(std::span(sums)), world::Number::f64, world::Reduce::sum);
    return sums[0] / sums[1];
}

/// What this rank holds of each parameter's reduced gradient.
class SplitGradients {
public:
    SplitGradients(const step::StepGraph& graph, int rank, step::Executor& executor) {
        for (const step::TensorId id : step::reduced_gradients_of(graph, graph.rank_class(rank))) {
            values_.push_back(executor.read(id));
            for (const step::ParameterRun& run : step::parameter_runs(graph, id, rank))
                runs_[run.parameter].push_back({run, values_.size() - 1});
        }
    }
    /// Adds the squares of differences and of the reference's values.
    void compare(model::ParameterId parameter, const std::vector<float>& reference, std::array<double, 2>& sums) const {
        const auto found = runs_.find(parameter);
        if (found == runs_.end()) return;
        for (const auto& [run, tensor] : found->second)
            for (std::int64_t i = 0; i < run.count; ++i) {
                const double expected = reference[static_cast<std::size_t>(run.global + i)];
                const double difference = values_[tensor][static_cast<std::size_t>(run.local + i)] - expected;
                sums[0] += difference * difference;
                sums[1] += expected * expected;
            }
    }
    /// Elements held of a parameter.
    std::int64_t held(model::ParameterId parameter) const {
        std::int64_t n = 0;
        if (const auto found = runs_.find(parameter); found != runs_.end())
            for (const auto& [run, tensor] : found->second) n += run.count;
        return n;
    }

private:
    std::vector<std::vector<float>> values_;
    std::map<model::ParameterId, std::vector<std::pair<step::ParameterRun, std::size_t>>> runs_;
};

/// Relative L2 over all ranks that hold a part; every element has to be held somewhere.
double distance(world::World& world, const SplitGradients& mine, model::ParameterId parameter,
                std::vector<float> reference, const std::string& name) {
    world.broadcast(std::as_writable_bytes(std::span(reference)), 0);
    std::array<double, 2> sums{};
    mine.compare(parameter, reference, sums);
    std::int64_t held = mine.held(parameter);
    world.all_reduce(std::as_writable_bytes(std::span(sums)), world::Number::f64, world::Reduce::sum);
    world.all_reduce(std::as_writable_bytes(std::span(&held, 1)), world::Number::i64, world::Reduce::sum);
    const auto elements = static_cast<std::int64_t>(reference.size());
    if (held < elements || held % elements != 0)
        throw LogicError(
            fmt::format("the ranks hold {} elements of the gradient of {}, which has {}", held, name, elements));
    return sums[1] == 0 ? std::sqrt(sums[0]) : std::sqrt(sums[0] / sums[1]);
}

void refuse(const std::string& what, double difference, double limit) {
    throw RuntimeError(fmt::format(
        "--check=numeric: {} differs by {:.3g} (relative L2, allowed {:.0e}); the split step does not compute "
        "what the unsplit one does",
        what, difference, limit));
}

}  // namespace

NumericReport check_numeric(world::World& world, const MakeExecutor& make_executor, const step::StepGraph& split,
                            const step::StepGraph& unsplit, double limit) {
    if (split.global_batch != unsplit.global_batch)
        throw LogicError("check_numeric compares graphs of different batches");
    NumericReport report;
    OneStep mine = run_one_step(world, make_executor, split);
    report.loss_split = mean_loss(world, mine.loss);
    const SplitGradients gradients(split, world.rank(), *mine.executor);
    mine.executor.reset();

    const auto alone = world::make_self_world();
    OneStep reference;
    world::agree(world, [&] {
        if (world.rank() == 0) reference = run_one_step(*alone, make_executor, unsplit);
    });
    report.loss_unsplit = reference.loss;
    world.broadcast(std::as_writable_bytes(std::span(&report.loss_unsplit, 1)), 0);
    const double loss_difference = std::abs(report.loss_split - report.loss_unsplit) / std::abs(report.loss_unsplit);
    if (!(loss_difference <= limit)) refuse("the loss", loss_difference, limit);
    for (const step::TensorId id : unsplit.reduced_gradients) {
        const step::Tensor& tensor = unsplit.tensor(id);
        std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
        world::agree(world, [&] {
            if (world.rank() == 0) values = reference.executor->read(id);
        });
        const double difference = distance(world, gradients, tensor.parameter, std::move(values), tensor.name);
        if (!(difference <= limit)) refuse("reduced gradient " + tensor.name, difference, limit);
        if (difference >= report.worst_relative_l2) {
            report.worst_relative_l2 = difference;
            report.worst_gradient = tensor.name;
        }
        ++report.gradients;
    }
    return report;
}

}  // namespace lockstep::drive
