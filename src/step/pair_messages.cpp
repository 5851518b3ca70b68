#include "step/pair_messages.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::step {

namespace {

/// From one rank to another over a communicator: stages along pp; along another axis one stage and the sender's offset.
struct Channel {
    std::int32_t communicator = 0;
    plan::Axis axis = plan::Axis::pp;
    std::int32_t from = 0, to = 0;
    bool operator==(const Channel&) const = default;
};
struct End {
    StageOp at;
    const Message* message = nullptr;
};
/// What has not met its other end yet, in order: sends only, or receives only.
struct Traffic {
    Channel channel;
    enum class Side { send, receive } side = Side::send;
    std::vector<End> waiting;
    std::size_t met = 0;
};

std::string describe(const StepGraph& graph, const StagePrograms& programs, const End& end) {
    const Tensor& tensor = graph.tensor(end.message->tensor);
    return fmt::format("{} ({} {}, tag {}) in {} of micro-batch {}", tensor.name, tensor.elements(),
                       to_string(tensor.dtype), end.message->tag, programs.op(end.at).name,
                       programs.instance(end.at).micro_batch);
}

class Matcher {
public:
    Matcher(const StepGraph& graph, StagePrograms& programs) : graph_(graph), programs_(programs) {}

    void visit(const StageOp& at, const P2PGroup& group) {
        for (const Message& m : group.sends) meet(channel_of(at, group, m.peer, Side::send), Side::send, {at, &m});
        for (const Message& m : group.receives)
            meet(channel_of(at, group, m.peer, Side::receive), Side::receive, {at, &m});
    }
    void expect_all_met() const {
        for (const Traffic& traffic : traffic_) {
            if (traffic.met == traffic.waiting.size()) continue;
            const End& lonely = traffic.waiting[traffic.met];
            const bool is_send = traffic.side == Side::send;
            throw InputError(fmt::format("stage {} {} {} but nobody {} it (unmatched message); add the other end",
                                         lonely.at.stage, is_send ? "sends" : "receives",
                                         describe(graph_, programs_, lonely), is_send ? "receives" : "sends"));
        }
    }

private:
    using Side = Traffic::Side;

    Channel channel_of(const StageOp& at, const P2PGroup& group, const Peer& peer, Side side) const {
        if (peer.axis == plan::Axis::pp) {
            const std::int32_t other = peer_stage(at, peer);
            return {group.communicator.value, peer.axis, side == Side::send ? at.stage : other,
                    side == Side::send ? other : at.stage};
        }
        const int extent = graph_.mesh.extent(peer.axis);
        const int offset = side == Side::send ? peer.offset : -peer.offset;
        return {group.communicator.value, peer.axis, at.stage, ((offset % extent) + extent) % extent};
    }
    std::int32_t peer_stage(const StageOp& at, const Peer& peer) const {
        const std::int32_t stages = graph_.mesh.pp;
        const std::int32_t to = at.stage + peer.offset;
        if (to >= 0 && to < stages) return to;
        if (peer.wraps) return ((to % stages) + stages) % stages;
        throw InputError(
            fmt::format("op {} of stage {} sends to or receives from stage {} of {} (unmatched message); no such "
                        "stage: leave it out there",
                        programs_.op(at).name, at.stage, to, stages));
    }
    Traffic& traffic_of(const Channel& channel) {
        if (last_ < traffic_.size() && traffic_[last_].channel == channel) return traffic_[last_];
        last_ = static_cast<std::size_t>(
            std::find_if(traffic_.begin(), traffic_.end(), [&](const Traffic& t) { return t.channel == channel; }) -
            traffic_.begin());
        if (last_ == traffic_.size()) traffic_.push_back({channel, Side::send, {}, 0});
        return traffic_[last_];
    }
    void meet(const Channel& channel, Side side, const End& end) {
        Traffic& traffic = traffic_of(channel);
        if (traffic.met == traffic.waiting.size()) {
            traffic.side = side;
            traffic.waiting.clear();
            traffic.met = 0;
        }
        if (traffic.side == side) {
            traffic.waiting.push_back(end);
            return;
        }
        const End& other = traffic.waiting[traffic.met++];
        const bool is_send = side == Side::send;
        expect_equal(is_send ? end : other, is_send ? other : end);
        programs_.meetings.add(std::array{other.at, end.at});
    }
    void expect_equal(const End& send, const End& receive) const {
        const Tensor& from = graph_.tensor(send.message->tensor);
        const Tensor& to = graph_.tensor(receive.message->tensor);
        if (send.message->tag == receive.message->tag && from.elements() == to.elements() && from.dtype == to.dtype)
            return;
        throw InputError(fmt::format(
            "stage {} sends {} where stage {} receives {} (unmatched message); make order, "
            "count, dtype and tag equal",
            send.at.stage, describe(graph_, programs_, send), receive.at.stage, describe(graph_, programs_, receive)));
    }

    const StepGraph& graph_;
    StagePrograms& programs_;
    std::vector<Traffic> traffic_;
    std::size_t last_ = 0;  // the channel of the message before
};

}  // namespace

void pair_messages(const StepGraph& graph, StagePrograms& programs) {
    Matcher matcher(graph, programs);
    for (std::int32_t stage = 0; stage < programs.stages(); ++stage) {
        const std::vector<OpInstance>& ops = programs.ops(stage);
        for (std::size_t i = 0; i < ops.size(); ++i)
            if (const auto* group = std::get_if<P2PGroup>(&ops[i].op->kind))
                matcher.visit({stage, static_cast<std::int32_t>(i)}, *group);
    }
    matcher.expect_all_met();
}

}  // namespace lockstep::step
