#include "analysis/breakdown.hpp"

#include <algorithm>

namespace lockstep::analysis {

namespace {

/// Spans of a step by what they are.
struct Classes {
    std::vector<Interval> compute, optimizer, transfer, wait, bubble, input, all;
};

void add_communication(Classes& classes, const step::Span& span, const LastArrivals& arrivals) {
    const auto last = arrivals.find({span.op, span.micro_batch});
    const Nanoseconds arrived = last == arrivals.end() ? span.start : std::clamp(last->second, span.start, span.end);
    classes.wait.push_back({span.start, arrived});
    classes.transfer.push_back({arrived, span.end});
}

bool crosses_stages(const step::StepGraph& graph, const step::Op& op) {
    const auto* group = std::get_if<step::P2PGroup>(&op.kind);
    if (group == nullptr) return false;
    const auto& axes = graph.communicators[group->communicator.index()].axes;
    return std::find(axes.begin(), axes.end(), plan::Axis::pp) != axes.end();
}

/// Shortest time of each op that sends between stages.
using OwnTimes = std::map<std::int32_t, Nanoseconds>;

OwnTimes shortest_messages(const step::StepGraph& graph, const step::StepRecord& record) {
    OwnTimes own;
    for (const step::Span& span : record.spans) {
        if (!crosses_stages(graph, graph.op(span.op))) continue;
        const Nanoseconds time = span.end - span.start;
        const auto [known, is_new] = own.try_emplace(span.op, time);
        if (!is_new) known->second = std::min(known->second, time);
    }
    return own;
}

Classes classify(const step::StepGraph& graph, const step::StepRecord& record, const LastArrivals& arrivals) {
    Classes classes;
    const OwnTimes own = shortest_messages(graph, record);
    for (const step::Span& span : record.spans) {
        const step::Op& op = graph.op(span.op);
        const Interval interval{span.start, span.end};
        classes.all.push_back(interval);
        // A wait does nothing: what it waits for is counted where it runs.
        if (std::holds_alternative<step::HostSync>(op.kind) || std::holds_alternative<step::StreamWait>(op.kind))
            continue;
        if (const auto message = own.find(span.op); message != own.end()) {
            classes.bubble.push_back({span.start, span.end - message->second});
            classes.transfer.push_back({span.end - message->second, span.end});
        } else if (step::is_communication(op)) {
            add_communication(classes, span, arrivals);
        } else if (graph.stream(op.stream).lane == step::Stream::Lane::input) {
            classes.input.push_back(interval);
        } else if (op.phase == step::Phase::optimizer) {
            classes.optimizer.push_back(interval);
        } else {
            classes.compute.push_back(interval);
        }
    }
    return classes;
}

/// From the first start to the last end, or nothing.
IntervalSet extent(const std::vector<Interval>& intervals) {
    if (intervals.empty()) return {};
    Interval whole = intervals.front();
    for (const Interval& i : intervals) {
        whole.begin = std::min(whole.begin, i.begin);
        whole.end = std::max(whole.end, i.end);
    }
    return IntervalSet({whole});
}

}  // namespace

StepBreakdown break_down(const step::StepGraph& graph, const step::StepRecord& record, Interval window,
                         const LastArrivals& arrivals) {
    const Classes classes = classify(graph, record, arrivals);
    StepBreakdown result;
    IntervalSet rest({window});
    // Takes from what is left of the window the part that `set` covers.
    const auto take = [&rest](const IntervalSet& set) {
        const Seconds length = rest.intersected(set).length();
        rest = rest.without(set);
        return length;
    };
    const IntervalSet compute(classes.compute);
    const IntervalSet optimizer(classes.optimizer);
    const IntervalSet bubble(classes.bubble);
    const IntervalSet communication =
        IntervalSet(classes.transfer).united(IntervalSet(classes.wait)).united(bubble).clipped(window);
    result.communication = communication.length();
    result.hidden_communication = communication.intersected(compute.united(optimizer)).length();
    result.parts.compute = take(compute);
    result.parts.optimizer = take(optimizer);
    result.parts.exposed_communication = take(IntervalSet(classes.transfer));
    result.parts.wait = take(IntervalSet(classes.wait));
    result.parts.bubble = take(bubble);
    result.parts.input = take(IntervalSet(classes.input));
    result.parts.launch = take(extent(classes.all));
    result.parts.idle = rest.length();
    return result;
}

}  // namespace lockstep::analysis
