// The part of the engine in which ranks are late by chance.
#include "sim/engine.hpp"

namespace lockstep::sim {

Drifts& Engine::drifts(Lane lane) {
    return drifts_[static_cast<std::size_t>(lane.actor) * graph_.streams.size() +
                   static_cast<std::size_t>(lane.stream)];
}

Drifts& Engine::drifts_at_end(Lane lane, const Current& done) {
    const Actor& a = actor(lane);
    const auto slot = static_cast<std::size_t>(done.step % static_cast<std::int64_t>(a.steps.size()));
    return drifts_at_end_[static_cast<std::size_t>(lane.actor)]
                         [slot * a.tape->ops.size() + static_cast<std::size_t>(done.index)];
}

Picoseconds Engine::start_of(Lane lane) const {
    const Current at = current(lane);
    return actors_[static_cast<std::size_t>(lane.actor)].step(at.step).start[static_cast<std::size_t>(at.index)];
}

/// The path to an op that begins now goes through what ended last of all it waited for; of another rank the order may
/// have been another.
void Engine::follow_latest(Lane lane, const Current& next) {
    const Actor& a = actor(lane);
    const TapeOp& op = *next.op;
    const Picoseconds own_end = stream(lane).ended;
    const Picoseconds issued = a.step(next.step).issued[static_cast<std::size_t>(next.index)];
    // All ranks wait for their hosts, whatever their kernels did before.
    if (a.waits_end(op, next.step, own_end) < issued) {
        drifts(lane).assign(graph_.communicators.size(), Drift{});
        return;
    }
    const auto of_wait = [&](const Wait& wait) -> const Drifts& {
        return drifts_at_end(lane, {nullptr, wait.op, next.step - wait.steps_back});
    };
    const Wait* latest = a.latest_wait(op, next.step, own_end);
    Drifts joined = latest == nullptr ? drifts(lane) : of_wait(*latest);
    const Picoseconds end = a.waits_end(op, next.step, own_end);
    if (latest != nullptr && stream(lane).done > 0)
        jitter_->join(joined, end, drifts(lane), own_end, Paths::of_one_rank);
    for (std::int32_t w = op.first_wait; w < op.first_wait + op.waits; ++w) {
        const Wait& wait = a.tape->waits[static_cast<std::size_t>(w)];
        if (&wait == latest || next.step < wait.steps_back) continue;
        const Picoseconds ended = a.step(next.step - wait.steps_back).end[static_cast<std::size_t>(wait.op)];
        jitter_->join(joined, end, of_wait(wait), ended, Paths::of_one_rank);
    }
    drifts(lane) = std::move(joined);
}

/// Time of the kernel or copy at full speed, with this rank's draw.
Seconds Engine::work_of(Lane lane, const Current& now) {
    if (!jitter_ || now.op->action != Action::kernel) return now.op->work;
    const int rank = world_.folding.groups[static_cast<std::size_t>(lane.actor)].representative;
    const double factor = jitter_->factor(rank, now.step, now.index);
    jitter_->add(drifts(lane), now.op->work / actor(lane).speed, factor);
    return now.op->work * factor;
}

/// How much later than this simulated rank the latest of those it stands for comes to a collective.
Seconds Engine::lateness(Lane lane, const Current& now) {
    if (!jitter_) return {};
    const int rank = world_.folding.groups[static_cast<std::size_t>(lane.actor)].representative;
    const std::int32_t communicator = std::get<step::Collective>(now.op->op->kind).communicator.value;
    return jitter_->meet(drifts(lane), communicator, world_.members(lane.actor, now.op->shape) - 1, rank, now.step,
                         now.index);
}

}  // namespace lockstep::sim
