// A simulated rank: its host, its streams, and the steps it has in flight.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/activity.hpp"
#include "sim/host_lane.hpp"
#include "sim/tape.hpp"
#include "step/span.hpp"

namespace lockstep::sim {

/// pending: the next op may begin, at a time that an event waits for.
enum class StreamPhase : std::uint8_t { idle, pending, busy };

struct StreamState {
    std::int64_t done = 0;  ///< ops done, over all steps
    StreamPhase phase = StreamPhase::idle;
    Picoseconds ended;                    ///< the op done last
    ActivityId activity;                  ///< of the kernel or copy under way
    bool is_kernel = false;               ///< the activity runs at the kernels' speed
    std::int32_t unmatched_messages = 0;  ///< of the message op under way
};

/// One step under way, or the one before it, whose ends are still asked for.
struct StepInFlight {
    std::int64_t step = -1;
    std::int32_t left = 0;  ///< ops not done
    std::vector<Picoseconds> issued;
    std::vector<Picoseconds> ready;
    std::vector<Picoseconds> start;
    std::vector<Picoseconds> end;
};

struct Actor {
    const Tape* tape = nullptr;
    HostLane host;
    bool is_host_waiting = false;  ///< for a completion: room to run ahead, or a host sync
    bool is_sync_issued = false;   ///< the host stands in a host sync whose time is already paid
    std::int64_t steps_enqueued = 0;
    std::int32_t active_communication = 0;
    double speed = 1;  ///< of its kernels, beside no communication
    std::vector<StreamState> streams;
    std::array<StepInFlight, 3> steps;  ///< step k at k modulo 3

    std::int64_t length() const { return static_cast<std::int64_t>(tape->ops.size()); }
    StepInFlight& step(std::int64_t k) { return steps[static_cast<std::size_t>(k % 3)]; }
    const StepInFlight& step(std::int64_t k) const { return steps[static_cast<std::size_t>(k % 3)]; }

    /// Whether all that tape op `t` of step k waits for is done.
    bool are_waits_over(const TapeOp& t, std::int64_t k) const;
    /// When the last of these was done; `least` when nothing is later.
    Picoseconds waits_end(const TapeOp& t, std::int64_t k, Picoseconds least) const;
    /// The last of these if it ended later than `least`; none otherwise.
    const Wait* latest_wait(const TapeOp& t, std::int64_t k, Picoseconds least) const;
};

Actor make_actor(const Tape& tape, std::int64_t run_ahead);
/// Takes up step k, which must follow the one before.
void open_step(Actor& actor, std::int64_t k);
/// What happened in a step that is done.
step::StepRecord make_record(const Actor& actor, std::int64_t k);

}  // namespace lockstep::sim
