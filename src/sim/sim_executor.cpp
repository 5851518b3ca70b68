#include "sim/sim_executor.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "sim/engine.hpp"

namespace lockstep::sim {

namespace {
constexpr std::int64_t most_in_flight = 2;
}

SimExecutor::SimExecutor(const step::Durations& durations, SimOptions options)
    : durations_(durations), options_(std::move(options)) {}

SimExecutor::~SimExecutor() = default;

void SimExecutor::prepare(const step::StepGraph& graph) {
    if (engine_) throw LogicError("a simulator was prepared twice");
    graph_ = &graph;
    engine_ = std::make_unique<Engine>(
        graph, fold_world(graph, durations_, options_.host_per_op, options_.variation, options_.fold),
        durations_.compute_slowdown(),
        options_.variation.jitter ? std::optional(DriftModel(*options_.variation.jitter, options_.seed))
                                  : std::nullopt);
}

void SimExecutor::enqueue(std::int64_t step) {
    engine();
    if (step != enqueued_) throw LogicError(fmt::format("step {} was enqueued after step {}", step, enqueued_ - 1));
    if (enqueued_ - collected_ >= most_in_flight)
        throw LogicError(fmt::format("step {} was enqueued with {} steps in flight", step, most_in_flight));
    engine_->enqueue(step);
    ++enqueued_;
}

std::vector<step::StepRecord> SimExecutor::collect() {
    engine();
    if (collected_ == enqueued_) throw LogicError("no step is in flight");
    engine_->run(collected_);
    return engine_->records(collected_++);
}

step::ExecutorInfo SimExecutor::info() const {
    std::string how = fmt::format("discrete events, seed {}", options_.seed);
    if (engine_)
        how += fmt::format(", {} of {} ranks for all, {} shared links", engine_->groups(), graph_->mesh.ranks(),
                           engine_->shared_links());
    return {"sim", options_.device + " (simulated)", how};
}

/// The rank class that needs most.
step::MemoryUse SimExecutor::memory() const {
    engine();
    step::MemoryUse most;
    for (const step::MemoryPlan& plan : step::measure_memory(*graph_))
        if (plan.peak.total > most.total) most = plan.peak;
    return most;
}

std::vector<float> SimExecutor::read(step::TensorId tensor) {
    engine();
    throw RuntimeError(
        fmt::format("tensor {} has no values (a simulator computes times only); use --backend cpu or gpu",
                    graph_->tensor(tensor).name));
}

void SimExecutor::check_wire() {
    throw RuntimeError("a simulator has no wires to check (it moves no bytes); use --backend cpu or gpu");
}

std::string SimExecutor::where() const { return engine_ ? engine_->where() : "not prepared"; }

const Engine& SimExecutor::engine() const {
    if (!engine_) throw LogicError("a simulator was used before prepare()");
    return *engine_;
}

}  // namespace lockstep::sim
