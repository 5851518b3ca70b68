#include "cpu/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "world/clock_sync.hpp"

namespace lockstep::cpu {

RunState::RunState(step::Schedule schedule, Nanoseconds epoch)
    : schedule_(std::move(schedule)), epoch_(epoch), progress_(new LaneProgress[schedule_.lanes.size()]) {
    for (StepSlot& s : slots_) {
        s.spans.resize(schedule_.ops.size());
        for (std::size_t i = 0; i < s.spans.size(); ++i) {
            const step::OpInstance& instance = schedule_.ops[i].instance;
            s.spans[i].op = instance.number;
            s.spans[i].micro_batch = instance.micro_batch;
            s.spans[i].stream = schedule_.ops[i].lane;
        }
    }
}

Nanoseconds RunState::now() const { return world::steady_now() - epoch_; }

void RunState::enqueue(std::int64_t step) {
    slot(step).enqueued = now();
    enqueued_.store(step + 1, std::memory_order_release);
    wake();
}

void RunState::wake() const {
    signal_.fetch_add(1, std::memory_order_acq_rel);
    signal_.notify_all();
}

RunState::Head RunState::head(std::int32_t lane) const {
    const std::int64_t done = progress_[lane].completed.load(std::memory_order_relaxed);
    const std::int64_t step = done / ops_of(lane);
    return {step, schedule_.lanes[lane].ops[static_cast<std::size_t>(done - step * ops_of(lane))]};
}

bool RunState::is_ready(std::int32_t lane, const Head& head) const {
    (void)lane;
    if (head.step >= enqueued_.load(std::memory_order_acquire)) return false;
    const auto& waits = schedule_.ops[head.position].needs(head.step).waits;
    return std::all_of(waits.begin(), waits.end(), [&](const step::Wait& wait) {
        const std::int64_t done = progress_[wait.lane].completed.load(std::memory_order_acquire);
        return done >= head.step * ops_of(wait.lane) + wait.count;
    });
}

void RunState::begin_op(std::int32_t lane, const Head& head, Nanoseconds start) {
    step::Span& span = slot(head.step).spans[head.position];
    Nanoseconds ready = slot(head.step).enqueued;
    for (const step::Source& source : schedule_.ops[head.position].needs(head.step).sources)
        ready = std::max(ready, slot(head.step - source.steps_back).spans[source.position].end);
    span.ready = ready;
    span.start = start;
    progress_[lane].is_busy.store(true, std::memory_order_relaxed);
}

void RunState::complete_op(std::int32_t lane, const Head& head, Nanoseconds end) {
    slot(head.step).spans[head.position].end = end;
    progress_[lane].is_busy.store(false, std::memory_order_relaxed);
    const std::int64_t done = progress_[lane].completed.load(std::memory_order_relaxed) + 1;
    progress_[lane].completed.store(done, std::memory_order_release);
    if (schedule_.ops[head.position].is_awaited || done % ops_of(lane) == 0) wake();
}

bool RunState::is_complete(std::int64_t step) const {
    for (std::size_t lane = 0; lane < schedule_.lanes.size(); ++lane) {
        const std::int64_t needed = (step + 1) * ops_of(static_cast<std::int32_t>(lane));
        if (progress_[lane].completed.load(std::memory_order_acquire) < needed) return false;
    }
    return true;
}

step::StepRecord RunState::collect(std::int64_t step) {
    wait([&] { return is_complete(step); });
    {
        const std::scoped_lock lock(failure_mutex_);
        if (failure_) std::rethrow_exception(failure_);
    }
    const StepSlot& done = slot(step);
    step::StepRecord record;
    record.step = step;
    record.loss = done.loss;
    record.spans = done.spans;
    record.begin = record.end = done.enqueued;
    if (done.spans.empty()) return record;
    record.begin = done.spans.front().ready;
    for (const step::Span& span : done.spans) {
        record.begin = std::min(record.begin, span.ready);
        record.end = std::max(record.end, span.end);
    }
    return record;
}

void RunState::stop() {
    over_.store(true, std::memory_order_release);
    wake();
}

void RunState::fail(std::exception_ptr failure) {
    {
        const std::scoped_lock lock(failure_mutex_);
        if (!failure_) failure_ = std::move(failure);
    }
    stop();
}

std::string RunState::where() const {
    std::string text;
    const std::int64_t enqueued = enqueued_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < schedule_.lanes.size(); ++i) {
        const auto lane = static_cast<std::int32_t>(i);
        if (schedule_.lanes[i].ops.empty()) continue;
        const Head at = head(lane);
        if (at.step >= enqueued) continue;
        const char* doing = progress_[i].is_busy.load(std::memory_order_relaxed) ? "in" : "before";
        text += fmt::format("{}step {}, {} op {}", text.empty() ? "" : "; ", at.step, doing,
                            schedule_.ops[at.position].instance.op->name);
    }
    return text.empty() ? fmt::format("idle after step {}", enqueued - 1) : text;
}

}  // namespace lockstep::cpu
