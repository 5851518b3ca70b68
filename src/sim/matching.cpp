#include "sim/matching.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "cost/peer.hpp"

namespace lockstep::sim {

namespace {

using MeetingKey = std::tuple<std::int32_t, std::int32_t, std::vector<std::int32_t>>;  // communicator, stream, groups
using ChannelKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, int>;          // communicator, from, to, tag

template <class Map>
std::int32_t number_of(Map& map, const typename Map::key_type& key) {
    return map.emplace(key, static_cast<std::int32_t>(map.size())).first->second;
}

std::optional<Lane> take_first(std::vector<Lane>& lanes) {
    if (lanes.empty()) return std::nullopt;
    const Lane first = lanes.front();
    lanes.erase(lanes.begin());
    return first;
}

}  // namespace

Matching::Matching(const step::StepGraph& graph, const Traffic& traffic, const Folding& folding,
                   const std::vector<const Tape*>& tape_of_actor)
    : streams_(graph.streams.size()),
      communicators_(graph.communicators.size()),
      meeting_at_(tape_of_actor.size() * streams_ * communicators_, -1),
      messages_(tape_of_actor.size()),
      message_index_(tape_of_actor.size()) {
    std::map<MeetingKey, std::int32_t> meetings;
    std::map<ChannelKey, std::int32_t> channels;
    for (std::size_t a = 0; a < tape_of_actor.size(); ++a) {
        const auto actor = static_cast<std::int32_t>(a);
        const int rank = folding.groups[a].representative;
        const Tape& tape = *tape_of_actor[a];
        for (std::size_t i = 0; i < tape.ops.size(); ++i) {
            const TapeOp& t = tape.ops[i];
            if (const auto* c = std::get_if<step::Collective>(&t.op->kind)) {
                std::int32_t& meeting = meeting_at_[place({actor, t.stream}, c->communicator)];
                if (meeting >= 0) continue;
                const auto& instance = traffic.instances[static_cast<std::size_t>(traffic.instance(t.shape, rank))];
                const MeetingKey key{c->communicator.value, t.stream, folding.groups_of(instance.ranks)};
                meeting = number_of(meetings, key);
                meetings_.resize(meetings.size());
                meetings_[static_cast<std::size_t>(meeting)].expected =
                    static_cast<std::int32_t>(std::get<2>(key).size());
            } else if (const auto* group = std::get_if<step::P2PGroup>(&t.op->kind)) {
                MessageSlots slots;
                auto peer_of = [&](const step::Message& m) {
                    return folding.group_of_rank[static_cast<std::size_t>(cost::peer_rank(graph.mesh, rank, m.peer))];
                };
                for (const step::Message& m : group->sends)
                    slots.sends.push_back(number_of(channels, {group->communicator.value, actor, peer_of(m), m.tag}));
                for (const step::Message& m : group->receives)
                    slots.receives.push_back(
                        number_of(channels, {group->communicator.value, peer_of(m), actor, m.tag}));
                message_index_[a].resize(tape.ops.size(), -1);
                message_index_[a][i] = static_cast<std::int32_t>(messages_[a].size());
                messages_[a].push_back(std::move(slots));
            }
        }
    }
    channels_.resize(channels.size());
}

std::size_t Matching::place(Lane lane, step::CommunicatorId communicator) const {
    return (static_cast<std::size_t>(lane.actor) * communicators_ + communicator.index()) * streams_ +
           static_cast<std::size_t>(lane.stream);
}

std::int32_t Matching::meeting_of(Lane lane, step::CommunicatorId communicator) const {
    return meeting_at_[place(lane, communicator)];
}

bool Matching::arrive(std::int32_t meeting, Lane lane) {
    Meeting& m = meetings_[static_cast<std::size_t>(meeting)];
    m.arrived.push_back(lane);
    return static_cast<std::int32_t>(m.arrived.size()) == m.expected;
}

void Matching::disband(std::int32_t meeting, std::vector<Lane>& members) {
    Meeting& m = meetings_[static_cast<std::size_t>(meeting)];
    members.assign(m.arrived.begin(), m.arrived.end());
    m.arrived.clear();
}

std::int32_t Matching::post(Lane lane, std::int32_t op, std::vector<Lane>& met) {
    met.clear();
    const auto actor = static_cast<std::size_t>(lane.actor);
    const std::int32_t index = message_index_[actor][static_cast<std::size_t>(op)];
    const MessageSlots& slots = messages_[actor][static_cast<std::size_t>(index)];
    std::int32_t waiting = 0;
    for (std::int32_t channel : slots.sends) {
        Channel& c = channels_[static_cast<std::size_t>(channel)];
        if (const auto partner = take_first(c.receivers)) {
            met.push_back(*partner);
        } else {
            c.senders.push_back(lane);
            ++waiting;
        }
    }
    for (std::int32_t channel : slots.receives) {
        Channel& c = channels_[static_cast<std::size_t>(channel)];
        if (const auto partner = take_first(c.senders)) {
            // A message of the group to itself (a folded ring): both ends are of this op.
            if (*partner == lane)
                --waiting;
            else
                met.push_back(*partner);
        } else {
            c.receivers.push_back(lane);
            ++waiting;
        }
    }
    return waiting;
}

}  // namespace lockstep::sim
