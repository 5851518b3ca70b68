// The events of the steps in flight: who waits for whom on the device, and when each op ran.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/device_clock.hpp"
#include "gpu/handles.hpp"
#include "step/schedule.hpp"
#include "step/span.hpp"

namespace lockstep::gpu {

/// Events are made once. Each op that another stream awaits has two without times, for this step and the one before;
/// each op has two with times, and each stream one for the end of a step, in each of the slots that steps use in turn.
class StepEvents {
public:
    explicit StepEvents(const step::Schedule& schedule);

    // ---- while a step is enqueued
    /// Which earlier op a stream must wait for before this one: by position, this step or the one before.
    const std::vector<step::Source>& awaited(std::int32_t position, std::int64_t step) const;
    cudaEvent_t done(std::int32_t position, std::int64_t step) const;
    void begin_step(std::int64_t step, Nanoseconds now, bool has_spans, cudaStream_t stream);
    void begin_op(std::int64_t step, std::int32_t position, Nanoseconds now, cudaStream_t stream);
    void end_op(std::int64_t step, std::int32_t position, cudaStream_t stream);
    void end_lane(std::int64_t step, std::int32_t lane, cudaStream_t stream);

    // ---- while it runs, from any thread
    bool is_complete(std::int64_t step) const;
    /// The first op of a lane that is not known to be complete: -1 when all are.
    std::int32_t unfinished(std::int64_t step, std::int32_t lane) const;

    // ---- when it is complete
    /// Fills in times and spans (none when the step was enqueued without). Steps in order, each once.
    void resolve(std::int64_t step, DeviceClock& clock, step::StepRecord& record);

    int events_per_step() const { return static_cast<int>(2 * schedule_.ops.size()); }

private:
    static constexpr std::int64_t kept_steps = 3;
    struct OpEvents {
        Event start, end;
    };
    struct Slot {
        Event anchor;
        std::vector<OpEvents> ops;
        std::vector<Event> lane_ends;
        std::vector<Nanoseconds> issued;
        Nanoseconds enqueued;
        bool has_spans = false;
    };
    Slot& slot(std::int64_t step) { return slots_[static_cast<std::size_t>(step % kept_steps)]; }
    const Slot& slot(std::int64_t step) const { return slots_[static_cast<std::size_t>(step % kept_steps)]; }
    std::vector<step::Source> sources_on_lanes(const step::ScheduledOp& op, const step::Needs& needs) const;
    step::Span resolve_op(const Slot& slot, std::int64_t step, std::size_t position, const DeviceClock& clock,
                          const std::vector<step::Span>& so_far);

    const step::Schedule& schedule_;
    std::vector<std::vector<step::Source>> first_, steady_;  // by position
    std::vector<std::array<Event, 2>> done_;                 // by position; null when nobody waits
    std::array<Slot, kept_steps> slots_;
    std::vector<Nanoseconds> lane_end_;      // of the step resolved last
    std::vector<Nanoseconds> previous_end_;  // of its ops; empty when it had no spans
};

}  // namespace lockstep::gpu
