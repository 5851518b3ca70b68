// What the driver, the compute thread and the communication thread of one executor share while steps run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "step/schedule.hpp"
#include "step/span.hpp"

namespace lockstep::cpu {

/// Compute and copy streams go to the compute thread, communication and input to the other.
inline bool runs_on_compute_thread(const step::ScheduledLane& lane) {
    return lane.kind == step::Stream::Lane::compute || lane.kind == step::Stream::Lane::copy;
}

/// Progress of all lanes and the times of the last three steps. Each lane has one thread that completes its ops; what a
/// thread wrote before complete() is seen by those that see the lane's new count.
class RunState {
public:
    RunState(step::Schedule schedule, Nanoseconds epoch);

    const step::Schedule& schedule() const { return schedule_; }
    Nanoseconds now() const;  ///< since the epoch

    // ---- by the driver
    void enqueue(std::int64_t step);
    /// Waits until all lanes have completed the step; rethrows a thread's failure.
    step::StepRecord collect(std::int64_t step);
    void stop();

    // ---- by the threads
    struct Head {
        std::int64_t step = 0;
        std::int32_t position = 0;
    };
    /// The lane's next op. Only the lane's thread may ask.
    Head head(std::int32_t lane) const;
    /// True when the head is enqueued and what it waits for is complete.
    bool is_ready(std::int32_t lane, const Head& head) const;
    void begin_op(std::int32_t lane, const Head& head, Nanoseconds start);
    void complete_op(std::int32_t lane, const Head& head, Nanoseconds end);
    void set_loss(std::int64_t step, float loss) { slot(step).loss = loss; }
    /// Ends the run: everybody wakes up, collect() throws.
    void fail(std::exception_ptr failure);
    bool is_over() const { return over_.load(std::memory_order_acquire); }

    /// Sleeps until `condition` holds or the run is over; it is looked at again whenever something awaited completes.
    template <class Condition>
    void wait(Condition condition) const {
        for (;;) {
            const std::uint32_t seen = signal_.load(std::memory_order_acquire);
            if (is_over() || condition()) return;
            signal_.wait(seen, std::memory_order_acquire);
        }
    }

    /// "step 12, op conv1.forward" of each lane that is in an op or waits for others. From any thread.
    std::string where() const;

private:
    struct alignas(64) LaneProgress {
        std::atomic<std::int64_t> completed{0};
        std::atomic<bool> is_busy{false};
    };
    struct StepSlot {
        Nanoseconds enqueued;
        std::vector<step::Span> spans;
        float loss = 0;
    };
    static constexpr std::int64_t kept_steps = 3;  // two in flight and the one before, whose end times they ask for
    StepSlot& slot(std::int64_t step) { return slots_[static_cast<std::size_t>(step % kept_steps)]; }
    const StepSlot& slot(std::int64_t step) const { return slots_[static_cast<std::size_t>(step % kept_steps)]; }
    std::int64_t ops_of(std::int32_t lane) const { return static_cast<std::int64_t>(schedule_.lanes[lane].ops.size()); }
    bool is_complete(std::int64_t step) const;
    void wake() const;

    step::Schedule schedule_;
    Nanoseconds epoch_;
    std::unique_ptr<LaneProgress[]> progress_;
    std::array<StepSlot, kept_steps> slots_;
    std::atomic<std::int64_t> enqueued_{0};  // steps
    mutable std::atomic<std::uint32_t> signal_{0};
    std::atomic<bool> over_{false};
    std::mutex failure_mutex_;
    std::exception_ptr failure_;
};

}  // namespace lockstep::cpu
