// The part of the engine in which ranks are late by chance.
#include "sim/engine.hpp"

namespace lockstep::sim {

Drift& Engine::drift(Lane lane) {
    return drifts_[static_cast<std::size_t>(lane.actor) * graph_.streams.size() +
                   static_cast<std::size_t>(lane.stream)];
}

/// The path to an op that begins now goes through what ended last of all it waited for.
void Engine::follow_latest(Lane lane, const Current& next) {
    const Actor& a = actor(lane);
    const Picoseconds ended = stream(lane).ended;
    const Picoseconds issued = a.step(next.step).issued[static_cast<std::size_t>(next.index)];
    const std::int32_t other = a.latest_wait(*next.op, next.step, ended);
    if (other >= 0) drift(lane) = drift({lane.actor, other});
    // All ranks wait for their hosts, whatever their kernels did before.
    if (a.waits_end(*next.op, next.step, ended) < issued) drift(lane).forget();
}

/// Time of the kernel or copy at full speed, with this rank's draw.
Seconds Engine::work_of(Lane lane, const Current& now) {
    if (!jitter_ || now.op->action != Action::kernel) return now.op->work;
    const int rank = world_.folding.groups[static_cast<std::size_t>(lane.actor)].representative;
    const double factor = jitter_->factor(rank, now.step, now.index);
    jitter_->add(drift(lane), now.op->work / actor(lane).speed, factor);
    return now.op->work * factor;
}

/// How much later than this simulated rank the latest of those it stands for comes to a collective.
Seconds Engine::lateness(Lane lane, const Current& now) {
    if (!jitter_) return {};
    const int rank = world_.folding.groups[static_cast<std::size_t>(lane.actor)].representative;
    const std::int32_t communicator = std::get<step::Collective>(now.op->op->kind).communicator.value;
    return jitter_->meet(drift(lane), communicator, world_.members(lane.actor, now.op->shape) - 1, rank, now.step,
                         now.index);
}

}  // namespace lockstep::sim
