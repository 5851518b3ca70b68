// The part of the engine in which ranks meet and bytes move.
#include <algorithm>

#include "sim/engine.hpp"

namespace lockstep::sim {

void Engine::join_meeting(Lane lane, const Current& current) {
    const TapeOp& op = *current.op;
    const std::int32_t meeting = matching_.meeting_of(lane, std::get<step::Collective>(op.op->kind).communicator);
    Communication& c = communications_[static_cast<std::size_t>(meeting)];
    // The ranks may see different times (their nodes differ): the slowest counts.
    c.time.latency = std::max(c.time.latency, op.communication.latency);
    c.time.transfer = std::max(c.time.transfer, op.communication.transfer);
    c.time.wire = std::max(c.time.wire, op.communication.wire);
    c.shape = op.shape;
    const Picoseconds latest = now_ + to_picoseconds(lateness(lane, current));
    if (latest >= c.all_there) {
        c.all_there = latest;
        c.latest = lane;
    }
    if (!matching_.arrive(meeting, lane)) return;
    matching_.disband(meeting, c.members);
    if (jitter_)
        for (const Lane member : c.members)
            if (!(member == c.latest)) drifts(member) = drifts(c.latest);
    if (c.all_there > now_)
        queue_.push(c.all_there, {EventKind::all_there, meeting, 0});
    else
        begin_communication(meeting);
}

std::int32_t Engine::message_communication(Lane lane) const {
    return matching_.meetings() + lane.actor * static_cast<std::int32_t>(graph_.streams.size()) + lane.stream;
}

void Engine::post_messages(Lane lane, const Current& current) {
    const std::int32_t own = message_communication(lane);
    Communication& c = communications_[static_cast<std::size_t>(own)];
    c.members.assign(1, lane);
    c.time = current.op->communication;
    c.shape = current.op->shape;
    const std::int32_t waiting = matching_.post(lane, current.index, partners_);
    stream(lane).unmatched_messages = waiting;
    for (Lane partner : partners_) {
        if (--stream(partner).unmatched_messages > 0) continue;
        if (jitter_) {
            Drifts latest = drifts(lane);
            jitter_->join(latest, now_, drifts(partner), start_of(partner), Paths::of_two_ranks);
            drifts(partner) = std::move(latest);
        }
        begin_communication(message_communication(partner));
    }
    if (waiting == 0) begin_communication(own);
}

void Engine::begin_communication(std::int32_t communication) {
    const Communication& c = communications_[static_cast<std::size_t>(communication)];
    for (Lane lane : c.members) change_load(lane, 1);
    queue_.push(now_ + to_picoseconds(c.time.latency), {EventKind::latency_over, communication, 0});
}

void Engine::begin_transfer(std::int32_t communication) {
    const Communication& c = communications_[static_cast<std::size_t>(communication)];
    if (c.time.transfer.value <= 0) return finish_communication(communication);
    const auto group = static_cast<std::size_t>(c.members.front().actor);
    const ActivityId id = transfers_.start(c.time.wire, c.time.wire / c.time.transfer,
                                           world_.folding.uses[group][static_cast<std::size_t>(c.shape)], now_);
    if (communication_of_transfer_.size() <= id.index()) communication_of_transfer_.resize(id.index() + 1);
    communication_of_transfer_[id.index()] = communication;
    post_transfers();
}

void Engine::finish_communication(std::int32_t communication) {
    Communication& c = communications_[static_cast<std::size_t>(communication)];
    finished_.assign(c.members.begin(), c.members.end());
    c.members.clear();
    c.time = {};
    c.all_there = {};
    for (Lane lane : finished_) change_load(lane, -1);
    for (Lane lane : finished_) complete(lane);
}

/// A communication of the rank begins (+1) or ends (-1): its kernels change speed with the first and the last.
void Engine::change_load(Lane lane, std::int32_t change) {
    Actor& a = actor(lane);
    const bool was_loaded = a.active_communication > 0;
    a.active_communication += change;
    const bool is_loaded = a.active_communication > 0;
    if (was_loaded == is_loaded || slowed_speed_ == 1) return;
    adjust_kernels(a);
}

void Engine::post_transfers() {
    for (const Due& due : transfers_.posts())
        queue_.push(due.time, {EventKind::transfer_due, due.id.value, due.version});
    transfers_.clear_posts();
}

}  // namespace lockstep::sim
