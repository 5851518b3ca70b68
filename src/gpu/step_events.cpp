#include "gpu/step_events.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"

namespace lockstep::gpu {
namespace {

void record(const Event& event, cudaStream_t stream) {
    check_cuda(cudaEventRecord(event.get(), stream), "cudaEventRecord");
}

/// Throws RuntimeError when the device failed.
bool has_happened(const Event& event) {
    const cudaError_t result = cudaEventQuery(event.get());
    if (result == cudaErrorNotReady) return false;
    check_cuda(result, "cudaEventQuery");
    return true;
}

}  // namespace

StepEvents::StepEvents(const step::Schedule& schedule)
    : schedule_(schedule), done_(schedule.ops.size()), lane_end_(schedule.lanes.size()) {
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
        const step::ScheduledOp& op = schedule.ops[i];
        first_.push_back(sources_on_lanes(op, op.first));
        steady_.push_back(sources_on_lanes(op, op.steady));
        if (op.is_awaited) done_[i] = {make_event(EventUse::ordering), make_event(EventUse::ordering)};
    }
    for (Slot& s : slots_) {
        s.anchor = make_event(EventUse::timing);
        for (std::size_t i = 0; i < schedule.ops.size(); ++i)
            s.ops.push_back({make_event(EventUse::timing), make_event(EventUse::timing)});
        for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane)
            s.lane_ends.push_back(make_event(EventUse::timing));
        s.issued.resize(schedule.ops.size());
    }
}

/// The last op of each other lane that is waited for: lanes run in order, so the others are done by then.
std::vector<step::Source> StepEvents::sources_on_lanes(const step::ScheduledOp& op, const step::Needs& needs) const {
    std::vector<step::Source> sources;
    for (const step::Wait& wait : needs.waits) {
        const step::ScheduledLane& lane = schedule_.lanes[static_cast<std::size_t>(wait.lane)];
        const auto ops = static_cast<std::int64_t>(lane.ops.size());
        std::int64_t place = wait.count - 1;
        std::int32_t steps_back = 0;
        for (; place < 0; place += ops) ++steps_back;
        if (steps_back > 1) throw LogicError("op " + op.instance.op->name + " depends on a step before the last");
        sources.push_back({lane.ops[static_cast<std::size_t>(place)], steps_back});
    }
    return sources;
}

const std::vector<step::Source>& StepEvents::awaited(std::int32_t position, std::int64_t step) const {
    return (step == 0 ? first_ : steady_)[static_cast<std::size_t>(position)];
}

cudaEvent_t StepEvents::done(std::int32_t position, std::int64_t step) const {
    return done_[static_cast<std::size_t>(position)][static_cast<std::size_t>(step % 2)].get();
}

void StepEvents::begin_step(std::int64_t step, Nanoseconds now, bool has_spans, cudaStream_t stream) {
    Slot& s = slot(step);
    s.enqueued = now;
    s.has_spans = has_spans;
    record(s.anchor, stream);
}

void StepEvents::begin_op(std::int64_t step, std::int32_t position, Nanoseconds now, cudaStream_t stream) {
    Slot& s = slot(step);
    s.issued[static_cast<std::size_t>(position)] = now;
    if (s.has_spans) record(s.ops[static_cast<std::size_t>(position)].start, stream);
}

void StepEvents::end_op(std::int64_t step, std::int32_t position, cudaStream_t stream) {
    const auto i = static_cast<std::size_t>(position);
    if (slot(step).has_spans) record(slot(step).ops[i].end, stream);
    if (schedule_.ops[i].is_awaited) record(done_[i][static_cast<std::size_t>(step % 2)], stream);
}

void StepEvents::end_lane(std::int64_t step, std::int32_t lane, cudaStream_t stream) {
    record(slot(step).lane_ends[static_cast<std::size_t>(lane)], stream);
}

bool StepEvents::is_complete(std::int64_t step) const {
    const auto& ends = slot(step).lane_ends;
    for (std::size_t lane = 0; lane < ends.size(); ++lane)
        if (!schedule_.lanes[lane].ops.empty() && !has_happened(ends[lane])) return false;
    return true;
}

std::int32_t StepEvents::unfinished(std::int64_t step, std::int32_t lane) const {
    const Slot& s = slot(step);
    const auto& ops = schedule_.lanes[static_cast<std::size_t>(lane)].ops;
    if (ops.empty() || cudaEventQuery(s.lane_ends[static_cast<std::size_t>(lane)].get()) == cudaSuccess) return -1;
    if (!s.has_spans) return ops.front();
    const auto first = std::find_if(ops.begin(), ops.end(), [&](std::int32_t position) {
        return cudaEventQuery(s.ops[static_cast<std::size_t>(position)].end.get()) != cudaSuccess;
    });
    return first == ops.end() ? ops.back() : *first;
}

/// Events are known to about half a microsecond: what the device ordered stays in order.
step::Span StepEvents::resolve_op(const Slot& s, std::int64_t step, std::size_t position, const DeviceClock& clock,
                                  const std::vector<step::Span>& so_far) {
    const step::ScheduledOp& op = schedule_.ops[position];
    step::Span span;
    span.op = op.instance.number;
    span.micro_batch = op.instance.micro_batch;
    span.stream = op.lane;
    Nanoseconds ready = s.issued[position];
    for (const step::Source& source : op.needs(step).sources) {
        const auto at = static_cast<std::size_t>(source.position);
        if (source.steps_back == 0) ready = std::max(ready, so_far[at].end);
        if (source.steps_back == 1 && !previous_end_.empty()) ready = std::max(ready, previous_end_[at]);
    }
    Nanoseconds& lane_end = lane_end_[static_cast<std::size_t>(op.lane)];
    span.start = std::max({clock.time(s.ops[position].start.get()), ready, lane_end});
    span.end = std::max(clock.time(s.ops[position].end.get()), span.start);
    // A rank arrives at a collective when its stream has come to it.
    span.ready = step::is_communication(*op.instance.op) ? span.start : ready;
    lane_end = span.end;
    return span;
}

void StepEvents::resolve(std::int64_t step, DeviceClock& clock, step::StepRecord& record) {
    const Slot& s = slot(step);
    clock.advance(s.anchor.get());
    record.begin = record.end = s.enqueued;
    if (s.has_spans)
        for (std::size_t i = 0; i < schedule_.ops.size(); ++i)
            record.spans.push_back(resolve_op(s, step, i, clock, record.spans));
    previous_end_.clear();
    for (const step::Span& span : record.spans) {
        previous_end_.push_back(span.end);
        record.end = std::max(record.end, span.end);
    }
    for (std::size_t lane = 0; lane < s.lane_ends.size(); ++lane) {
        if (schedule_.lanes[lane].ops.empty()) continue;
        lane_end_[lane] = std::max(lane_end_[lane], clock.time(s.lane_ends[lane].get()));
        record.end = std::max(record.end, lane_end_[lane]);
    }
    clock.align();
}

}  // namespace lockstep::gpu
