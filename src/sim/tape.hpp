// One step of a rank class laid out for simulation: what each op does, how long it takes, and what it waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "sim/shapes.hpp"
#include "step/durations.hpp"
#include "step/graph.hpp"

namespace lockstep::sim {

/// kernel: device work that communication beside it slows; copy: device work that it doesn't.
enum class Action : std::uint8_t { kernel, copy, collective, messages, host_sync };

/// Another op of the tape that must be done first, in the same step or the one before.
struct Wait {
    std::int32_t op = 0;
    std::int32_t steps_back = 0;
};

struct TapeOp {
    const step::Op* op = nullptr;
    std::int32_t number = 0;
    std::int32_t micro_batch = 0;
    std::int32_t stream = 0;
    std::int32_t place = 0;  ///< among the ops of its stream in a step
    Action action = Action::kernel;
    std::int32_t first_wait = 0;
    std::int32_t waits = 0;
    Picoseconds host_time;
    Seconds work;             ///< of kernels and copies
    std::int32_t shape = -1;  ///< of communications
    step::CommunicationTime communication;
};

struct Tape {
    std::vector<TapeOp> ops;  ///< in issue order
    std::vector<Wait> waits;
    std::vector<std::vector<std::int32_t>> of_stream;  ///< ops of each stream, without host syncs
};

/// The tape of a class, with the durations of `rank`, one of it. Every step after the first has the same waits relative
/// to its own begin, and the first has those within itself, since each tensor is touched in the same order each step;
/// so the tracker runs over two steps and the tape serves all. Of several ops of one stream only the last is waited
/// for: streams run in order. Host syncs are not waited for: what is issued after one comes after it. Throws InputError
/// for durations that are negative or not finite, naming the op.
Tape make_tape(const step::StepGraph& graph, const step::RankClass& rank_class, int rank, const Shapes& shapes,
               const step::Durations& durations, Seconds host_per_op);

}  // namespace lockstep::sim
