// Small step graphs that every executor must run: same ops, order kept, no negative span, equal reduced values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "step/graph.hpp"
#include "step/op_cost.hpp"

namespace lockstep::contract {

/// Puts a graph of one rank class together, op by op. Streams: 0 compute, 1 "dp".
class Sketch {
public:
    Sketch(std::string name, int ranks, int micro_batches = 1) {
        graph_.name = std::move(name);
        graph_.mesh.dp = ranks;
        graph_.placement = {ranks, ranks};
        graph_.micro_batches = micro_batches;
        graph_.communicators = {{"dp", {plan::Axis::dp}, ranks}};
        graph_.streams = {{step::Stream::Lane::compute, {}, "compute"}, {step::Stream::Lane::communication, {0}, "dp"}};
        graph_.classes = {{"all", {}, ranks, 0}};
        graph_.class_of_stage = {{0}};
    }

    step::TensorId tensor(std::string name, Shape shape, step::Role role, step::Lifetime lifetime,
                          step::Initial initial = {}, DType dtype = DType::fp32) {
        step::Tensor t;
        t.name = std::move(name);
        t.shape = std::move(shape);
        t.role = role;
        t.lifetime = lifetime;
        t.initial = initial;
        t.dtype = dtype;
        graph_.tensors.push_back(std::move(t));
        return {static_cast<std::int32_t>(graph_.tensors.size() - 1)};
    }
    step::TensorId activation(std::string name, Shape shape) {
        return tensor(std::move(name), std::move(shape), step::Role::activation, step::Lifetime::micro_batch);
    }
    step::TensorId carried(std::string name, Shape shape, step::Role role, step::Initial initial = {}) {
        return tensor(std::move(name), std::move(shape), role, step::Lifetime::carried, initial);
    }
    /// Samples of this rank: split over dp, one copy for each micro-batch.
    step::TensorId input(std::string name, Shape shape, DType dtype, step::Initial initial) {
        const auto id =
            tensor(std::move(name), std::move(shape), step::Role::input, step::Lifetime::carried, initial, dtype);
        graph_.tensors.back().shards = {{0, plan::Axis::dp}};
        graph_.tensors.back().slots = graph_.micro_batches;
        return id;
    }

    /// Ops go to a new block, issued once for each of the micro-batches from `first` on.
    void block(std::string name, step::Phase phase, int first_micro_batch = 0) {
        const auto id = static_cast<std::int32_t>(graph_.blocks.size());
        graph_.blocks.push_back({std::move(name), phase, {}, graph_.op_count()});
        for (int m = first_micro_batch; m < graph_.micro_batches; ++m)
            graph_.classes[0].program.issues.push_back({{id}, m, 0});
    }
    step::Op& op(std::string name, step::OpKind kind, std::vector<step::TensorId> in, std::vector<step::Write> out,
                 std::int32_t stream = 0) {
        step::Op o;
        o.name = std::move(name);
        o.phase = graph_.blocks.back().phase;
        o.kind = std::move(kind);
        o.in = std::move(in);
        o.out = std::move(out);
        o.stream = {stream};
        o.flops = step::flops_of(o);
        o.bytes = step::bytes_of(graph_, o);
        o.host_time = 2_us;
        graph_.blocks.back().ops.push_back(std::move(o));
        return graph_.blocks.back().ops.back();
    }
    step::Op& collective(std::string name, step::CollectiveKind kind, std::int64_t count, step::TensorId in,
                         step::TensorId out) {
        const step::Collective c{kind, {0}, step::Reduction::average, count, DType::fp32};
        const auto access = in == out ? step::Access::update : step::Access::overwrite;
        return op(std::move(name), c, {in}, {{out, access}}, 1);
    }

    step::StepGraph& graph() { return graph_; }

private:
    step::StepGraph graph_;
};

/// A linear classifier, trained: x [batch, width] w^T -> logits -> loss; its gradient all-reduced; SGD with momentum.
step::StepGraph linear_classifier(int ranks, int micro_batches = 1);

/// Two buffers are filled; while the first is all-reduced the second is made; then a reduce-scatter of each rank's
/// share and an all-gather give what an all-reduce gives.
step::StepGraph scatter_and_gather(int ranks);

/// Each rank sends a buffer to the next and receives one from the rank before, in one group, around a ring.
step::StepGraph ring_shift(int ranks);

struct NamedGraph {
    std::string name;
    step::StepGraph graph;
};
/// All of the above for a world of `ranks`, and each collective alone where there are two ranks or more.
std::vector<NamedGraph> all_graphs(int ranks);

}  // namespace lockstep::contract
