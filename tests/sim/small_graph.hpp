// Step graphs of a few ops with durations given by name, for tests of the simulator.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/durations.hpp"
#include "step/graph.hpp"

namespace lockstep::sim {

/// Durations from tables by op name; 0 where none is given.
class TableDurations final : public step::Durations {
public:
    std::map<std::string, Seconds> work;
    std::map<std::string, step::CommunicationTime> messages;
    double slowdown = 0;

    Seconds compute(const step::StepGraph&, int, const step::OpInstance& op) const override {
        const auto known = work.find(op.op->name);
        return known == work.end() ? Seconds{} : known->second;
    }
    step::CommunicationTime communication(const step::StepGraph&, int, const step::OpInstance& op) const override {
        const auto known = messages.find(op.op->name);
        return known == messages.end() ? step::CommunicationTime{} : known->second;
    }
    double compute_slowdown() const override { return slowdown; }
};

/// Streams of every small graph: 0 compute, 1 and 2 communication, 3 input.
struct SmallGraph {
    step::StepGraph graph;
    TableDurations durations;

    explicit SmallGraph(plan::Mesh mesh = {.dp = 2}, std::vector<plan::Axis> axes = {plan::Axis::dp}) {
        graph.mesh = mesh;
        graph.placement = {mesh.ranks(), mesh.ranks()};
        int members = 1;
        for (plan::Axis axis : axes) members *= mesh.extent(axis);
        graph.communicators.push_back({"c", std::move(axes), members});
        using Lane = step::Stream::Lane;
        graph.streams = {{Lane::compute, {}, "compute"},
                         {Lane::communication, {0}, "c"},
                         {Lane::communication, {0}, "c2"},
                         {Lane::input, {}, "input"}};
    }

    /// One class of ranks that issues the ops added from now on; stages are added in order.
    void stage(const std::string& name) {
        const auto id = static_cast<std::int32_t>(graph.classes.size());
        plan::Coordinates first;
        first.pp = id;
        const std::int32_t first_op = graph.op_count();
        graph.blocks.push_back({name, step::Phase::forward, {}, first_op});
        step::RankClass rank_class{name, {{{{id}, 0, 0}}}, graph.mesh.ranks() / graph.mesh.pp, graph.mesh.rank(first)};
        graph.classes.push_back(rank_class);
        graph.class_of_stage.push_back({id});
    }

    step::TensorId tensor(const std::string& name, step::Lifetime lifetime = step::Lifetime::step) {
        step::Tensor t;
        t.name = name;
        t.shape = Shape{16};
        t.lifetime = lifetime;
        graph.tensors.push_back(t);
        return {static_cast<std::int32_t>(graph.tensors.size() - 1)};
    }

    step::Op& add(const std::string& name, step::OpKind kind, std::int32_t stream, std::vector<step::TensorId> in,
                  std::vector<step::TensorId> out) {
        step::Op op;
        op.name = name;
        op.kind = std::move(kind);
        op.stream = {stream};
        op.in = std::move(in);
        for (step::TensorId id : out) op.out.push_back({id, step::Access::overwrite});
        op.bytes = Bytes{64};
        graph.blocks.back().ops.push_back(op);
        return graph.blocks.back().ops.back();
    }

    step::Op& kernel(const std::string& name, Seconds time, std::vector<step::TensorId> in,
                     std::vector<step::TensorId> out, Seconds host_time = {}) {
        durations.work[name] = time;
        step::Op& op = add(name, step::Compute{step::Fill{}}, 0, std::move(in), std::move(out));
        op.host_time = host_time;
        return op;
    }

    step::Op& all_reduce(const std::string& name, step::CommunicationTime time, step::TensorId buffer,
                         std::int32_t stream = 1) {
        durations.messages[name] = time;
        step::Collective collective;
        collective.communicator = {0};
        collective.count = 16;
        return add(name, collective, stream, {buffer}, {buffer});
    }

    /// One send and/or one receive along an axis.
    step::Op& message(const std::string& name, Seconds time, plan::Axis axis,
                      std::vector<std::pair<int, step::TensorId>> sends,
                      std::vector<std::pair<int, step::TensorId>> receives, bool wraps = false) {
        durations.messages[name] = {Seconds{}, time};
        step::P2PGroup group;
        group.communicator = {0};
        std::vector<step::TensorId> in, out;
        for (auto [offset, tensor] : sends) {
            group.sends.push_back({{axis, offset, wraps}, tensor, 0});
            in.push_back(tensor);
        }
        for (auto [offset, tensor] : receives) {
            group.receives.push_back({{axis, offset, wraps}, tensor, 0});
            out.push_back(tensor);
        }
        return add(name, group, 1, in, out);
    }

    /// Span of an op in a record, by name.
    const step::Span& span(const step::StepRecord& record, const std::string& name) const {
        for (const step::Span& s : record.spans)
            if (graph.op(s.op).name == name) return s;
        throw std::out_of_range(name);
    }
};

}  // namespace lockstep::sim
