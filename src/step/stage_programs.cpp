#include "step/stage_programs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

namespace {

bool crosses_stages(const Communicator& communicator) {
    return std::find(communicator.axes.begin(), communicator.axes.end(), plan::Axis::pp) != communicator.axes.end();
}

// ---- collectives

using CollectivesOf = std::vector<std::vector<StageOp>>;  // by stage

void check_members(const StepGraph& graph, const Communicator& communicator, std::int64_t stages) {
    std::int64_t size = stages;
    for (const plan::Axis axis : communicator.axes)
        if (axis != plan::Axis::pp) size *= graph.mesh.extent(axis);
    if (size != communicator.size)
        throw InputError(
            fmt::format("communicator {} has {} ranks but {} take part in its collectives; make them equal",
                        communicator.name, communicator.size, size));
}

void check_equal(const StagePrograms& programs, const Communicator& communicator, const StageOp& a, const StageOp& b) {
    const Op& x = programs.op(a);
    const Op& y = programs.op(b);
    const auto& c = std::get<Collective>(x.kind);
    const auto& d = std::get<Collective>(y.kind);
    if (x.name == y.name && c.kind == d.kind && c.reduction == d.reduction && c.count == d.count && c.dtype == d.dtype)
        return;
    throw InputError(
        fmt::format("communicator {}: stage {} issues {} ({}, {} {}) where stage {} issues {} ({}, {} {}) (collectives "
                    "out of order or "
                    "unequal); issue the same ones in the same order",
                    communicator.name, a.stage, x.name, kind_name(x), c.count, to_string(c.dtype), b.stage, y.name,
                    kind_name(y), d.count, to_string(d.dtype)));
}

void pair_collectives(const StepGraph& graph, CommunicatorId id, const CollectivesOf& of, StagePrograms& programs) {
    const Communicator& communicator = graph.communicators[id.index()];
    std::vector<const std::vector<StageOp>*> members;
    for (const auto& ops : of)
        if (!ops.empty()) members.push_back(&ops);
    if (members.empty()) return;
    check_members(graph, communicator, static_cast<std::int64_t>(members.size()));
    for (std::size_t k = 0;; ++k) {
        Meeting meeting;
        for (const auto* ops : members)
            if (k < ops->size()) meeting.ops.push_back((*ops)[k]);
        if (meeting.ops.empty()) return;
        if (meeting.ops.size() < members.size()) {
            const StageOp& lonely = meeting.ops.front();
            throw InputError(
                fmt::format("communicator {}: stage {} issues {} but another stage issues nothing to match "
                            "it; issue it on all",
                            communicator.name, lonely.stage, programs.op(lonely).name));
        }
        for (const StageOp& other : meeting.ops) check_equal(programs, communicator, meeting.ops.front(), other);
        programs.meetings.push_back(std::move(meeting));
    }
}

// ---- messages

/// From one rank to another over a communicator: stages along pp; along another axis one stage and the sender's offset.
using Channel = std::tuple<std::int32_t, plan::Axis, std::int32_t, std::int32_t>;
struct End {
    StageOp at;
    const Message* message = nullptr;
};
struct Traffic {
    std::vector<End> sends, receives;
};

std::int32_t peer_stage(const StepGraph& graph, const StagePrograms& programs, const StageOp& at, const Peer& peer) {
    const std::int32_t stages = graph.mesh.pp;
    const std::int32_t to = at.stage + peer.offset;
    if (to >= 0 && to < stages) return to;
    if (peer.wraps) return ((to % stages) + stages) % stages;
    throw InputError(
        fmt::format("op {} of stage {} sends to or receives from stage {} of {} (unmatched message); no such "
                    "stage: leave it out there",
                    programs.op(at).name, at.stage, to, stages));
}

Channel channel_of(const StepGraph& graph, const StagePrograms& programs, const StageOp& at,
                   CommunicatorId communicator, const Peer& peer, bool is_send) {
    if (peer.axis == plan::Axis::pp) {
        const std::int32_t other = peer_stage(graph, programs, at, peer);
        return {communicator.value, peer.axis, is_send ? at.stage : other, is_send ? other : at.stage};
    }
    const int extent = graph.mesh.extent(peer.axis);
    const int offset = is_send ? peer.offset : -peer.offset;
    return {communicator.value, peer.axis, at.stage, ((offset % extent) + extent) % extent};
}

void check_pair(const StepGraph& graph, const StagePrograms& programs, const End& send, const End& receive) {
    const Tensor& from = graph.tensor(send.message->tensor);
    const Tensor& to = graph.tensor(receive.message->tensor);
    if (send.message->tag == receive.message->tag && from.elements() == to.elements() && from.dtype == to.dtype) return;
    throw InputError(
        fmt::format("stage {} sends {} ({} {}, tag {}) in {} where stage {} receives {} ({} {}, tag {}) in {} "
                    "(unmatched message); make "
                    "order, count, dtype and tag equal",
                    send.at.stage, from.name, from.elements(), to_string(from.dtype), send.message->tag,
                    programs.op(send.at).name, receive.at.stage, to.name, to.elements(), to_string(to.dtype),
                    receive.message->tag, programs.op(receive.at).name));
}

void pair_messages(const StepGraph& graph, const Traffic& traffic, StagePrograms& programs) {
    const std::size_t pairs = std::min(traffic.sends.size(), traffic.receives.size());
    for (std::size_t i = 0; i < pairs; ++i) {
        check_pair(graph, programs, traffic.sends[i], traffic.receives[i]);
        programs.meetings.push_back({{traffic.sends[i].at, traffic.receives[i].at}});
    }
    if (traffic.sends.size() == traffic.receives.size()) return;
    const bool is_send = traffic.sends.size() > pairs;
    const End& lonely = is_send ? traffic.sends[pairs] : traffic.receives[pairs];
    throw InputError(fmt::format("stage {} {} {} in {} but nobody {} it (unmatched message); add the other end",
                                 lonely.at.stage, is_send ? "sends" : "receives",
                                 graph.tensor(lonely.message->tensor).name, programs.op(lonely.at).name,
                                 is_send ? "receives" : "sends"));
}

/// Collects both kinds in issue order.
struct Collector {
    const StepGraph& graph;
    const StagePrograms& programs;
    std::vector<CollectivesOf> collectives;  // by communicator
    std::map<Channel, Traffic> messages;

    void visit(const StageOp& at) {
        const Op& op = programs.op(at);
        if (const auto* c = std::get_if<Collective>(&op.kind)) {
            if (crosses_stages(graph.communicators[c->communicator.index()]))
                collectives[c->communicator.index()][static_cast<std::size_t>(at.stage)].push_back(at);
        } else if (const auto* group = std::get_if<P2PGroup>(&op.kind)) {
            for (const Message& m : group->sends)
                messages[channel_of(graph, programs, at, group->communicator, m.peer, true)].sends.push_back({at, &m});
            for (const Message& m : group->receives)
                messages[channel_of(graph, programs, at, group->communicator, m.peer, false)].receives.push_back(
                    {at, &m});
        }
    }
};

}  // namespace

StagePrograms unroll(const StepGraph& graph) {
    StagePrograms programs;
    programs.class_of = graph.class_of_stage;
    for (const RankClass& rank_class : graph.classes) {
        auto& ops = programs.of_class.emplace_back();
        for_each_op(graph, rank_class.program, [&](const OpInstance& op) { ops.push_back(op); });
    }
    Collector collector{graph, programs, {}, {}};
    collector.collectives.assign(graph.communicators.size(),
                                 CollectivesOf(static_cast<std::size_t>(programs.stages())));
    for (std::int32_t stage = 0; stage < programs.stages(); ++stage)
        for (std::size_t i = 0; i < programs.ops(stage).size(); ++i)
            collector.visit({stage, static_cast<std::int32_t>(i)});
    for (std::size_t c = 0; c < graph.communicators.size(); ++c)
        pair_collectives(graph, CommunicatorId{static_cast<std::int32_t>(c)}, collector.collectives[c], programs);
    for (const auto& [channel, traffic] : collector.messages) pair_messages(graph, traffic, programs);
    return programs;
}

}  // namespace lockstep::step
