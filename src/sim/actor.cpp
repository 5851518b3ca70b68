#include "sim/actor.hpp"

#include <algorithm>
#include <limits>

namespace lockstep::sim {

bool Actor::are_waits_over(const TapeOp& t, std::int64_t k) const {
    for (std::int32_t w = t.first_wait; w < t.first_wait + t.waits; ++w) {
        const Wait& wait = tape->waits[static_cast<std::size_t>(w)];
        const TapeOp& earlier = tape->ops[static_cast<std::size_t>(wait.op)];
        const auto stream = static_cast<std::size_t>(earlier.stream);
        const auto per_step = static_cast<std::int64_t>(tape->of_stream[stream].size());
        if (streams[stream].done <= (k - wait.steps_back) * per_step + earlier.place && k >= wait.steps_back)
            return false;
    }
    return true;
}

Picoseconds Actor::waits_end(const TapeOp& t, std::int64_t k, Picoseconds least) const {
    for (std::int32_t w = t.first_wait; w < t.first_wait + t.waits; ++w) {
        const Wait& wait = tape->waits[static_cast<std::size_t>(w)];
        if (k >= wait.steps_back)
            least = std::max(least, step(k - wait.steps_back).end[static_cast<std::size_t>(wait.op)]);
    }
    return least;
}

const Wait* Actor::latest_wait(const TapeOp& t, std::int64_t k, Picoseconds least) const {
    const Wait* latest = nullptr;
    for (std::int32_t w = t.first_wait; w < t.first_wait + t.waits; ++w) {
        const Wait& wait = tape->waits[static_cast<std::size_t>(w)];
        if (k < wait.steps_back) continue;
        const Picoseconds end = step(k - wait.steps_back).end[static_cast<std::size_t>(wait.op)];
        if (end <= least) continue;
        least = end;
        latest = &wait;
    }
    return latest;
}

Actor make_actor(const Tape& tape, std::int64_t run_ahead) {
    Actor actor;
    actor.tape = &tape;
    actor.host = HostLane(run_ahead);
    actor.streams.resize(tape.of_stream.size());
    for (StepInFlight& s : actor.steps) {
        s.issued.resize(tape.ops.size());
        s.ready.resize(tape.ops.size());
        s.start.resize(tape.ops.size());
        s.end.resize(tape.ops.size());
    }
    return actor;
}

void open_step(Actor& actor, std::int64_t k) {
    StepInFlight& s = actor.step(k);
    s.step = k;
    s.left = static_cast<std::int32_t>(actor.tape->ops.size());
    actor.steps_enqueued = k + 1;
}

step::StepRecord make_record(const Actor& actor, std::int64_t k) {
    const StepInFlight& s = actor.step(k);
    step::StepRecord record;
    record.step = k;
    record.begin = s.issued.front().nanoseconds();
    record.end = std::max_element(s.end.begin(), s.end.end())->nanoseconds();
    record.loss = std::numeric_limits<double>::quiet_NaN();
    record.spans.reserve(actor.tape->ops.size());
    for (std::size_t i = 0; i < actor.tape->ops.size(); ++i) {
        const TapeOp& t = actor.tape->ops[i];
        record.spans.push_back({t.number, t.micro_batch, t.stream, s.ready[i].nanoseconds(), s.start[i].nanoseconds(),
                                s.end[i].nanoseconds()});
    }
    return record;
}

}  // namespace lockstep::sim
