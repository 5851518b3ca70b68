#include "drive/numeric_check.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.hpp"
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

double mean_over_ranks(world::World& world, double value) {
    world.all_reduce(std::as_writable_bytes(std::span(&value, 1)), world::Number::f64, world::Reduce::sum);
    return value / world.size();
}

/// Largest difference of a value from the same value on rank 0, over all ranks.
double spread_over_ranks(world::World& world, const std::vector<float>& values) {
    std::vector<float> root = values;
    world.broadcast(std::as_writable_bytes(std::span(root)), 0);
    double spread = relative_l2(values, root);
    world.all_reduce(std::as_writable_bytes(std::span(&spread, 1)), world::Number::f64, world::Reduce::max);
    return spread;
}

void refuse(const std::string& what, double difference, double limit) {
    throw RuntimeError(fmt::format(
        "--check=numeric: {} differs by {:.3g} (relative L2, allowed {:.0e}); the split step does not compute "
        "what the unsplit one does",
        what, difference, limit));
}

}  // namespace

double relative_l2(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) throw LogicError("relative_l2 of vectors of different length");
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        difference += d * d;
        norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

NumericReport check_numeric(world::World& world, const MakeExecutor& make_executor, const step::StepGraph& split,
                            const step::StepGraph& unsplit, double limit) {
    if (split.global_batch != unsplit.global_batch ||
        split.reduced_gradients.size() != unsplit.reduced_gradients.size())
        throw LogicError("check_numeric compares graphs of different batches or models");
    NumericReport report;
    report.gradients = split.reduced_gradients.size();

    OneStep mine = run_one_step(world, make_executor, split);
    report.loss_split = mean_over_ranks(world, mine.loss);
    std::vector<std::vector<float>> gradients;
    double worst_spread = 0;
    std::string worst_spread_name;
    for (const step::TensorId id : split.reduced_gradients) {
        gradients.push_back(mine.executor->read(id));
        const double spread = spread_over_ranks(world, gradients.back());
        if (!(spread <= worst_spread)) {
            worst_spread = spread;
            worst_spread_name = split.tensor(id).name;
        }
    }
    mine.executor.reset();

    world::agree(world, [&] {
        if (!(worst_spread <= limit))
            refuse("reduced gradient " + worst_spread_name + " between ranks", worst_spread, limit);
        if (world.rank() != 0) return;
        const auto alone = world::make_self_world();
        OneStep reference = run_one_step(*alone, make_executor, unsplit);
        report.loss_unsplit = reference.loss;
        const double loss_difference =
            std::abs(report.loss_split - report.loss_unsplit) / std::abs(report.loss_unsplit);
        if (!(loss_difference <= limit)) refuse("the loss", loss_difference, limit);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            const double difference = relative_l2(gradients[i], reference.executor->read(unsplit.reduced_gradients[i]));
            const std::string& name = split.tensor(split.reduced_gradients[i]).name;
            if (!(difference <= limit)) refuse("reduced gradient " + name, difference, limit);
            if (difference >= report.worst_relative_l2) {
                report.worst_relative_l2 = difference;
                report.worst_gradient = name;
            }
        }
    });
    return report;
}

}  // namespace lockstep::drive
