// Who meets whom: the collectives and messages of simulated ranks find their counterparts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/folding.hpp"
#include "sim/tape.hpp"
#include "step/graph.hpp"

namespace lockstep::sim {

/// A stream of a simulated rank; it has at most one op under way.
struct Lane {
    std::int32_t actor = 0;
    std::int32_t stream = 0;
    bool operator==(const Lane&) const = default;
};

/// The simulated ranks that carry out a collective together.
struct Meeting {
    std::int32_t expected = 0;
    std::vector<Lane> arrived;
};

/// Messages with one tag from one simulated rank to another: sends and receives pair off in order.
struct Channel {
    std::vector<Lane> senders;
    std::vector<Lane> receivers;
};

/// Message slots of one op: sends first, then receives.
struct MessageSlots {
    std::vector<std::int32_t> sends;     ///< channels
    std::vector<std::int32_t> receives;  ///< channels
};

/// Built once from the folding and the tapes. A communicator of the representative is carried out by the groups its
/// members belong to; several of them may be the same group, whose representative then also stands for its peers. Since
/// streams run in order, a meeting is over before any of its members arrives at the next one: one object serves all.
class Matching {
public:
    Matching(const step::StepGraph& graph, const Traffic& traffic, const Folding& folding,
             const std::vector<const Tape*>& tape_of_actor);

    std::int32_t meetings() const { return static_cast<std::int32_t>(meetings_.size()); }
    /// The meeting that a collective of `lane` joins.
    std::int32_t meeting_of(Lane lane, step::CommunicatorId communicator) const;
    /// True when `lane` is the last to come: the meeting may begin.
    bool arrive(std::int32_t meeting, Lane lane);
    /// Ends a meeting and hands over its members, in order of arrival.
    void disband(std::int32_t meeting, std::vector<Lane>& members);

    /// Posts the messages of tape op `op` of `lane`. `met` receives the lanes of partners that were waiting, one entry
    /// a message. Returns how many messages still wait for a partner.
    std::int32_t post(Lane lane, std::int32_t op, std::vector<Lane>& met);

private:
    std::size_t place(Lane lane, step::CommunicatorId communicator) const;

    std::size_t streams_ = 0;
    std::size_t communicators_ = 0;
    std::vector<Meeting> meetings_;
    std::vector<std::int32_t> meeting_at_;  ///< by actor, communicator, stream; -1: none
    std::vector<Channel> channels_;
    std::vector<std::vector<MessageSlots>> messages_;       ///< by actor, of its message ops in tape order
    std::vector<std::vector<std::int32_t>> message_index_;  ///< by actor and tape op; empty when it has no messages
};

}  // namespace lockstep::sim
