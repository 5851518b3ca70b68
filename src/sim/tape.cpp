#include "sim/tape.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/dependencies.hpp"

namespace lockstep::sim {

namespace {

Action action_of(const step::StepGraph& graph, const step::Op& op) {
    if (std::holds_alternative<step::Collective>(op.kind)) return Action::collective;
    if (std::holds_alternative<step::P2PGroup>(op.kind)) return Action::messages;
    if (std::holds_alternative<step::HostSync>(op.kind)) return Action::host_sync;
    return graph.stream(op.stream).lane == step::Stream::Lane::compute ? Action::kernel : Action::copy;
}

Seconds checked(Seconds time, const step::Op& op) {
    if (!std::isfinite(time.value) || time.value < 0)
        throw InputError(
            fmt::format("{} takes {} s (not a duration); check the machine and its calibration", op.name, time.value));
    return time;
}

TapeOp make_op(const step::StepGraph& graph, int rank, const Shapes& shapes, const step::Durations& durations,
               const step::OpInstance& instance) {
    const step::Op& op = *instance.op;
    TapeOp t;
    t.op = &op;
    t.number = instance.number;
    t.micro_batch = instance.micro_batch;
    t.stream = op.stream.value;
    t.action = action_of(graph, op);
    if (step::is_communication(op)) {
        t.shape = shapes.of_op[static_cast<std::size_t>(instance.number)];
        t.communication = durations.communication(graph, rank, instance);
        // A buffer of no bytes that takes time all the same moves as one byte.
        if (!(t.communication.wire.value > 0)) t.communication.wire = std::max(op.bytes, Bytes{1});
        checked(t.communication.latency, op);
        checked(t.communication.transfer, op);
    } else if (t.action != Action::host_sync) {
        t.work = checked(durations.compute(graph, rank, instance), op);
    }
    return t;
}

/// Keeps the last op of each stream.
void add_waits(Tape& tape, TapeOp& t, const std::vector<std::int64_t>& sequences, std::int64_t step_length) {
    std::vector<std::int64_t> last(tape.of_stream.size(), -1);
    for (std::int64_t sequence : sequences) {
        const TapeOp& earlier = tape.ops[static_cast<std::size_t>(sequence % step_length)];
        if (earlier.action == Action::host_sync) continue;
        auto& known = last[static_cast<std::size_t>(earlier.stream)];
        known = std::max(known, sequence);
    }
    t.first_wait = static_cast<std::int32_t>(tape.waits.size());
    for (std::int64_t sequence : last)
        if (sequence >= 0)
            tape.waits.push_back({static_cast<std::int32_t>(sequence % step_length), sequence < step_length ? 1 : 0});
    t.waits = static_cast<std::int32_t>(tape.waits.size()) - t.first_wait;
}

}  // namespace

Tape make_tape(const step::StepGraph& graph, const step::RankClass& rank_class, int rank, const Shapes& shapes,
               const step::Durations& durations, Seconds host_per_op) {
    Tape tape;
    tape.of_stream.resize(graph.streams.size());
    step::DependencyTracker tracker(graph);
    std::int64_t sequence = 0;
    step::for_each_op(graph, rank_class.program, [&](const step::OpInstance& instance) {
        TapeOp t = make_op(graph, rank, shapes, durations, instance);
        t.host_time = to_picoseconds(checked(instance.op->host_time + host_per_op, *instance.op));
        auto& stream = tape.of_stream[instance.op->stream.index()];
        if (t.action != Action::host_sync) {
            t.place = static_cast<std::int32_t>(stream.size());
            stream.push_back(static_cast<std::int32_t>(tape.ops.size()));
        }
        tape.ops.push_back(t);
        tracker.next(instance, sequence++);
    });
    if (tape.ops.empty()) throw InputError("rank class " + rank_class.name + " has no ops; nothing can be simulated");
    const auto length = static_cast<std::int64_t>(tape.ops.size());
    step::for_each_op(graph, rank_class.program, [&](const step::OpInstance& instance) {
        const auto& earlier = tracker.next(instance, sequence);
        add_waits(tape, tape.ops[static_cast<std::size_t>(sequence - length)], earlier, length);
        ++sequence;
    });
    return tape;
}

}  // namespace lockstep::sim
