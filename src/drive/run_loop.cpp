#include "drive/run_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "drive/watchdog.hpp"
#include "world/agree.hpp"

namespace lockstep::drive {

namespace {

/// What a rank tells the others after each step; the largest wins.
enum class Flag : std::int32_t { go_on = 0, graceful = 1, urgent = 2, failed = 3 };

/// The flags of all ranks, reduced one step behind, so that nobody waits for the slowest in the middle of a step.
class StopDecision {
public:
    explicit StopDecision(world::World& world) : world_(world.split(0, world.rank())) {}

    void post(Flag mine) {
        value_ = static_cast<std::int32_t>(mine);
        request_ = world_->start_all_reduce(std::as_writable_bytes(std::span(&value_, 1)), world::Number::i32,
                                            world::Reduce::max);
    }

    /// The largest flag of the last post; sleeps between looks, because a spinning wait would take the core that
    /// computes.
    Flag wait() {
        if (!request_) return Flag::go_on;
        while (!request_->test()) std::this_thread::sleep_for(std::chrono::microseconds(200));
        request_.reset();
        return static_cast<Flag>(value_);
    }

private:
    std::unique_ptr<world::World> world_;
    std::unique_ptr<world::Request> request_;
    std::int32_t value_ = 0;
};

Flag flag_of(const StopSignals* signals) {
    if (signals == nullptr) return Flag::go_on;
    switch (signals->request()) {
        case StopRequest::none: return Flag::go_on;
        case StopRequest::graceful: return Flag::graceful;
        case StopRequest::urgent: return Flag::urgent;
    }
    return Flag::go_on;
}

void say(const world::World& world, const std::string& message) {
    fmt::print(stderr, "lockstep: rank {} on {}: {}\n", world.rank(), world.host(), message);
    std::fflush(stderr);
}

/// Marks the file as interrupted the moment a TERM or INT arrives, and says what the rank was doing: a kill may follow
/// within seconds, also because another rank has failed.
class UrgentMark {
public:
    UrgentMark(StopSignals* signals, std::mutex& writer_mutex, record::LiveWriter& writer, const world::World& world,
               const step::Executor& executor)
        : signals_(signals) {
        if (signals_ == nullptr) return;
        signals_->on_urgent([&writer_mutex, &writer, &world, &executor] {
            if (world.size() > 1) say(world, "told to end at " + executor.where());
            const std::lock_guard lock(writer_mutex);
            try {
                writer.set_status(record::Status::interrupted);
            } catch (const Error&) {
                // The disk is gone; the loop reports it at its next write.
            }
        });
    }
    ~UrgentMark() {
        if (signals_ != nullptr) signals_->on_urgent({});
    }
    UrgentMark(const UrgentMark&) = delete;
    UrgentMark& operator=(const UrgentMark&) = delete;

private:
    StopSignals* signals_;
};

/// Says why, ends this rank's communication and then all ranks.
[[noreturn]] void end_world(world::World& world, step::Executor& executor, const std::string& message) {
    say(world, message);
    executor.abort();
    // Ranks that wait for the same thing get the time to say so, too.
    if (world.size() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    world.abort(static_cast<int>(ExitCode::runtime_failure));
    std::abort();  // unreachable; the compiler does not trust a virtual [[noreturn]]
}

void enqueue_or_end(world::World& world, step::Executor& executor, std::int64_t step) {
    try {
        executor.enqueue(step);
    } catch (const std::exception& error) {
        if (world.size() == 1) throw;
        end_world(world, executor,
                  fmt::format("{} (at {}); all ranks end, finished steps are kept", error.what(), executor.where()));
    }
}

std::vector<step::StepRecord> collect_or_end(world::World& world, step::Executor& executor) {
    try {
        return executor.collect();
    } catch (const std::exception& error) {
        if (world.size() == 1) throw;
        end_world(world, executor,
                  fmt::format("{} (at {}); all ranks end, finished steps are kept", error.what(), executor.where()));
    }
}

LoopOutcome outcome_of(Flag flag, std::int64_t steps) {
    LoopOutcome outcome;
    outcome.steps = steps;
    if (flag == Flag::graceful) outcome.stopped_by = StopRequest::graceful;
    if (flag == Flag::urgent) outcome.stopped_by = StopRequest::urgent;
    if (flag != Flag::go_on)
        outcome.status = flag == Flag::failed ? record::Status::failed : record::Status::interrupted;
    return outcome;
}

}  // namespace

LoopOutcome run_loop(world::World& world, step::Executor& executor, record::LiveWriter& writer, StopSignals* signals,
                     const LoopOptions& options) {
    StopDecision decision(world);
    std::mutex writer_mutex;
    std::exception_ptr write_error;
    Flag agreed = Flag::go_on;
    std::int64_t done = 0;
    {
        const UrgentMark mark(signals, writer_mutex, writer, world, executor);
        Watchdog watchdog(options.timeout, [&] {
            end_world(world, executor,
                      fmt::format("no step finished for {} s (at {}); all ranks end, finished steps are kept; "
                                  "raise --timeout if a step may take longer",
                                  options.timeout.value, executor.where()));
        });
        enqueue_or_end(world, executor, 0);
        std::int64_t enqueued = 1;
        while (done < enqueued) {
            agreed = std::max(agreed, decision.wait());
            if (agreed == Flag::go_on && enqueued < options.steps) enqueue_or_end(world, executor, enqueued++);
            const std::vector<step::StepRecord> records = collect_or_end(world, executor);
            watchdog.kick();
            if (!write_error) {
                try {
                    const std::lock_guard lock(writer_mutex);
                    for (const auto& record : records) writer.append(record);
                } catch (const Error&) { write_error = std::current_exception(); }
            }
            ++done;
            if (world.rank() == 0 && options.on_step && !records.empty()) options.on_step(records.front());
            if (done < enqueued) decision.post(write_error ? Flag::failed : flag_of(signals));
        }
        if (world.size() > 1) {
            // The last step's flags: a write may have failed in it.
            decision.post(write_error ? Flag::failed : Flag::go_on);
            agreed = std::max(agreed, decision.wait());
        }
    }
    // A stop asked for during the last step stops nothing.
    if (done == options.steps && agreed != Flag::failed) agreed = Flag::go_on;
    const LoopOutcome outcome = outcome_of(write_error ? Flag::failed : agreed, done);
    world::agree(world, [&] {
        if (write_error) std::rethrow_exception(write_error);
        const std::lock_guard lock(writer_mutex);
        writer.set_status(outcome.status);
    });
    return outcome;
}

}  // namespace lockstep::drive
