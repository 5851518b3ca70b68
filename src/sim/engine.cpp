#include "sim/engine.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::sim {

namespace {

std::vector<const Tape*> tapes_of_groups(const FoldedWorld& world) {
    std::vector<const Tape*> result;
    for (const RankGroup& group : world.folding.groups) result.push_back(&world.tape(group));
    return result;
}

}  // namespace

Engine::Engine(const step::StepGraph& graph, FoldedWorld world, double compute_slowdown,
               std::optional<DriftModel> jitter)
    : graph_(graph),
      world_(std::move(world)),
      slowed_speed_(1 - compute_slowdown),
      matching_(graph, world_.traffic, world_.folding, tapes_of_groups(world_)),
      jitter_(std::move(jitter)) {
    if (!(slowed_speed_ > 0 && slowed_speed_ <= 1))
        throw InputError(
            fmt::format("compute_slowdown is {} (a share below 1 is wanted); check the calibration", compute_slowdown));
    const std::int64_t run_ahead = graph.is_blocking_launch ? 1 : graph.run_ahead;
    if (run_ahead < 1)
        throw InputError(fmt::format("run_ahead is {} (the host must issue ops); use at least 1", run_ahead));
    for (const Tape* tape : tapes_of_groups(world_)) actors_.push_back(make_actor(*tape, run_ahead));
    communications_.resize(static_cast<std::size_t>(matching_.meetings()) + actors_.size() * graph.streams.size());
    if (jitter_) {
        drifts_.assign(actors_.size() * graph.streams.size(), Drifts(graph.communicators.size()));
        for (const Actor& a : actors_) drifts_at_end_.emplace_back(a.steps.size() * a.tape->ops.size());
    }
    for (const Bandwidth capacity : world_.folding.links) transfers_.add_link(capacity);
    for (std::size_t a = 0; a < actors_.size(); ++a) {
        const SpeedProfile& speeds =
            world_.likeness.kinds[static_cast<std::size_t>(world_.folding.groups[a].kind)].speeds;
        for (std::size_t i = 0; i < speeds.size(); ++i)
            queue_.push(speeds[i].from,
                        {EventKind::speed_change, static_cast<std::int32_t>(a), static_cast<std::uint32_t>(i)});
    }
}

void Engine::enqueue(std::int64_t k) {
    ranks_left_[k] = static_cast<std::int32_t>(actors_.size());
    for (std::size_t a = 0; a < actors_.size(); ++a) {
        open_step(actors_[a], k);
        if (actors_[a].is_host_waiting) continue;
        actors_[a].host.hold_until(now_);
        advance_host(static_cast<std::int32_t>(a));
        try_begin_all(static_cast<std::int32_t>(a));
    }
}

void Engine::run(std::int64_t k) {
    while (ranks_left_.contains(k)) {
        if (queue_.is_empty()) report_deadlock(k);
        const auto event = queue_.pop();
        now_ = event.time;
        dispatch(event.payload);
    }
}

void Engine::dispatch(const Event& event) {
    switch (event.kind) {
        case EventKind::begin: begin({event.id, static_cast<std::int32_t>(event.detail)}); return;
        case EventKind::all_there: begin_communication(event.id); return;
        case EventKind::latency_over: begin_transfer(event.id); return;
        case EventKind::speed_change: change_speed(event.id, event.detail); return;
        case EventKind::work_due: {
            const auto fired = work_.fire({event.id}, event.detail, now_);
            if (fired.outcome == Activities<Seconds>::Outcome::postponed) post_work(fired.due);
            if (fired.outcome == Activities<Seconds>::Outcome::done)
                complete(lane_of_work_[static_cast<std::size_t>(event.id)]);
            return;
        }
        case EventKind::transfer_due: {
            const auto outcome = transfers_.fire({event.id}, event.detail, now_);
            post_transfers();
            if (outcome == Transfers::Outcome::done)
                finish_communication(communication_of_transfer_[static_cast<std::size_t>(event.id)]);
            return;
        }
    }
}

/// Issues ops until the host must wait or has no more.
void Engine::advance_host(std::int32_t index) {
    Actor& a = actors_[static_cast<std::size_t>(index)];
    a.is_host_waiting = false;
    while (a.host.issued() < a.steps_enqueued * a.length() || a.is_sync_issued) {
        if (!a.is_sync_issued && !a.host.has_room()) {
            a.is_host_waiting = true;
            return;
        }
        const std::int64_t sequence = a.host.issued() - (a.is_sync_issued ? 1 : 0);
        const std::int64_t k = sequence / a.length();
        const auto i = static_cast<std::size_t>(sequence % a.length());
        const TapeOp& t = a.tape->ops[i];
        StepInFlight& s = a.step(k);
        if (!a.is_sync_issued) s.issued[i] = a.host.issue(t.host_time);
        if (t.action != Action::host_sync) continue;
        a.is_sync_issued = true;
        if (!a.are_waits_over(t, k)) {
            a.is_host_waiting = true;
            return;
        }
        a.is_sync_issued = false;
        s.ready[i] = s.start[i] = s.issued[i];
        s.end[i] = a.waits_end(t, k, s.issued[i]);
        a.host.hold_until(s.end[i]);
        finish_op(a, k, static_cast<std::int32_t>(i));
    }
}

void Engine::try_begin_all(std::int32_t index) {
    const auto streams = static_cast<std::int32_t>(graph_.streams.size());
    for (std::int32_t s = 0; s < streams; ++s) try_begin({index, s});
}

Engine::Current Engine::current(Lane lane) const {
    const Actor& a = actors_[static_cast<std::size_t>(lane.actor)];
    const auto& order = a.tape->of_stream[static_cast<std::size_t>(lane.stream)];
    const auto per_step = static_cast<std::int64_t>(order.size());
    const std::int64_t done = a.streams[static_cast<std::size_t>(lane.stream)].done;
    const std::int32_t index = order[static_cast<std::size_t>(done % per_step)];
    return {&a.tape->ops[static_cast<std::size_t>(index)], index, done / per_step};
}

/// Begins the next op of a stream, now or when it is issued, if nothing else holds it back.
void Engine::try_begin(Lane lane) {
    Actor& a = actor(lane);
    StreamState& s = stream(lane);
    if (s.phase != StreamPhase::idle || a.tape->of_stream[static_cast<std::size_t>(lane.stream)].empty()) return;
    const Current next = current(lane);
    if (next.step * a.length() + next.index >= a.host.issued() || !a.are_waits_over(*next.op, next.step)) return;
    StepInFlight& in_flight = a.step(next.step);
    const auto i = static_cast<std::size_t>(next.index);
    in_flight.ready[i] = a.waits_end(*next.op, next.step, in_flight.issued[i]);
    if (in_flight.issued[i] <= now_) return begin(lane);
    s.phase = StreamPhase::pending;
    queue_.push(in_flight.issued[i], {EventKind::begin, lane.actor, static_cast<std::uint32_t>(lane.stream)});
}

void Engine::begin(Lane lane) {
    StreamState& s = stream(lane);
    s.phase = StreamPhase::busy;
    const Current now = current(lane);
    actor(lane).step(now.step).start[static_cast<std::size_t>(now.index)] = now_;
    if (jitter_) follow_latest(lane, now);
    if (now.op->action == Action::collective) return join_meeting(lane, now);
    if (now.op->action == Action::messages) return post_messages(lane, now);
    s.is_kernel = now.op->action == Action::kernel;
    const Due due = work_.start(work_of(lane, now), s.is_kernel ? kernel_speed(actor(lane)) : 1.0, now_);
    s.activity = due.id;
    if (lane_of_work_.size() <= due.id.index()) lane_of_work_.resize(due.id.index() + 1);
    lane_of_work_[due.id.index()] = lane;
    post_work(due);
}

void Engine::complete(Lane lane) {
    Actor& a = actor(lane);
    StreamState& s = stream(lane);
    const Current done = current(lane);
    a.step(done.step).end[static_cast<std::size_t>(done.index)] = now_;
    if (jitter_) drifts_at_end(lane, done) = drifts(lane);
    s.phase = StreamPhase::idle;
    s.ended = now_;
    s.activity = {};
    ++s.done;
    finish_op(a, done.step, done.index);
    if (a.is_host_waiting) {
        a.host.hold_until(now_);
        advance_host(lane.actor);
    }
    try_begin_all(lane.actor);
}

void Engine::finish_op(Actor& a, std::int64_t step, std::int32_t index) {
    a.host.complete();
    last_step_.store(step, std::memory_order_relaxed);
    last_op_.store(a.tape->ops[static_cast<std::size_t>(index)].number, std::memory_order_relaxed);
    if (--a.step(step).left > 0) return;
    const auto left = ranks_left_.find(step);
    if (--left->second == 0) ranks_left_.erase(left);
}

double Engine::kernel_speed(const Actor& a) const {
    return a.active_communication > 0 ? a.speed * slowed_speed_ : a.speed;
}

void Engine::adjust_kernels(const Actor& a) {
    for (const StreamState& s : a.streams)
        if (s.activity.is_valid() && s.is_kernel) post_work(work_.set_rate(s.activity, kernel_speed(a), now_));
}

void Engine::change_speed(std::int32_t index, std::size_t step) {
    Actor& a = actors_[static_cast<std::size_t>(index)];
    const auto kind = static_cast<std::size_t>(world_.folding.groups[static_cast<std::size_t>(index)].kind);
    a.speed = world_.likeness.kinds[kind].speeds[step].speed;
    adjust_kernels(a);
}

void Engine::post_work(const Due& due) {
    if (due.is_posted) queue_.push(due.time, {EventKind::work_due, due.id.value, due.version});
}

std::vector<step::StepRecord> Engine::records(std::int64_t k) const {
    std::vector<step::StepRecord> result;
    for (std::size_t i = 0; i < actors_.size(); ++i) {
        result.push_back(make_record(actors_[i], k));
        result.back().rank = world_.folding.groups[i].representative;
        result.back().multiplicity = world_.folding.groups[i].multiplicity;
    }
    return result;
}

std::string Engine::where() const {
    const std::int32_t op = last_op_.load(std::memory_order_relaxed);
    if (op < 0) return "nothing is done yet";
    return fmt::format("step {}, op {}", last_step_.load(std::memory_order_relaxed), graph_.op(op).name);
}

void Engine::report_deadlock(std::int64_t k) const {
    std::string waiting;
    int named = 0;
    for (std::size_t a = 0; a < actors_.size(); ++a)
        for (std::size_t s = 0; s < graph_.streams.size(); ++s) {
            if (actors_[a].tape->of_stream[s].empty()) continue;
            const Current next = current({static_cast<std::int32_t>(a), static_cast<std::int32_t>(s)});
            if (next.step > k || ++named > 8) continue;
            const bool has_begun = actors_[a].streams[s].phase == StreamPhase::busy;
            waiting += fmt::format("\n  rank {}, stream {}: {} {}", world_.folding.groups[a].representative,
                                   graph_.streams[s].name, next.op->op->name,
                                   has_begun ? "waits for its counterparts" : "can't begin");
        }
    throw RuntimeError(
        fmt::format("step {} never ends (ops wait for each other); run `lockstep check`:{}", k, waiting));
}

}  // namespace lockstep::sim
