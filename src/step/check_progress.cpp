#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"
#include "step/completion_clock.hpp"
#include "step/dependencies.hpp"
#include "step/stage_programs.hpp"

namespace lockstep::step {

namespace {

/// Lists of numbers, one behind the other.
struct Lists {
    std::vector<std::int32_t> begin{0};  // of each list; and of the one after the last
    std::vector<std::int32_t> values;

    void close() { begin.push_back(static_cast<std::int32_t>(values.size())); }
    std::span<const std::int32_t> of(std::size_t list) const {
        return std::span(values).subspan(static_cast<std::size_t>(begin[list]),
                                         static_cast<std::size_t>(begin[list + 1] - begin[list]));
    }
};

/// The ops of a class as its ranks run them.
struct Order {
    std::vector<std::int32_t> stream;               // by op
    std::vector<std::int32_t> place;                // by op: among those of its stream
    std::vector<std::vector<std::int32_t>> queues;  // ops, by stream
    Lists waits;                                    // by op: ops of other streams
    std::vector<char> is_waited_for;                // by op: by the host
};

Order order_of(const StepGraph& graph, const std::vector<OpInstance>& ops, DependencyTracker& tracker,
               CompletionClock& clock) {
    tracker.restart();
    clock.restart();
    Order order;
    order.queues.resize(graph.streams.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const OpInstance& op = ops[i];
        auto& queue = order.queues[op.op->stream.index()];
        order.stream.push_back(op.op->stream.value);
        order.place.push_back(static_cast<std::int32_t>(queue.size()));
        queue.push_back(static_cast<std::int32_t>(i));
        for (const std::int32_t earlier : clock.next(op, tracker.next(op, static_cast<std::int64_t>(i))))
            order.waits.values.push_back(earlier);
        order.waits.close();
        order.is_waited_for.push_back(graph.is_blocking_launch || std::holds_alternative<HostSync>(op.op->kind));
    }
    return order;
}

/// One rank of a stage: its host issues in order, its streams run in order.
struct Rank {
    const Order* order = nullptr;
    std::int32_t first = 0;                   // number of its first op among those of all stages
    std::vector<std::int32_t> done;           // by stream: ops at the head of its queue
    std::vector<char> has_arrived;            // by stream: the next op is ready, and waits for its meetings only
    std::vector<std::int32_t> meetings_left;  // by op: others that have not arrived
    std::int32_t issued = 0;

    std::int32_t ops() const { return static_cast<std::int32_t>(order->place.size()); }
    bool is_done(std::int32_t op) const {
        const auto i = static_cast<std::size_t>(op);
        return done[static_cast<std::size_t>(order->stream[i])] > order->place[i];
    }
};

class Run {
public:
    explicit Run(const StepGraph& graph)
        : graph_(graph), programs_(unroll(graph)), missing_(programs_.meetings.size()) {
        DependencyTracker tracker(graph);
        CompletionClock clock(graph);
        for (const auto& ops : programs_.of_class) orders_.push_back(order_of(graph, ops, tracker, clock));
        std::int32_t ops = 0;
        for (std::int32_t stage = 0; stage < programs_.stages(); ++stage) {
            const Order& order = orders_[programs_.class_of[static_cast<std::size_t>(stage)].index()];
            ranks_.push_back({&order, ops, std::vector<std::int32_t>(graph.streams.size()),
                              std::vector<char>(graph.streams.size()), std::vector<std::int32_t>(order.place.size()),
                              0});
            ops += ranks_.back().ops();
        }
        index_meetings(static_cast<std::size_t>(ops));
    }

    void run() {
        for (bool has_moved = true; has_moved;) {
            has_moved = false;
            for (Rank& rank : ranks_)
                while (advance(rank)) has_moved = true;
        }
        report_stuck();
    }

private:
    void index_meetings(std::size_t ops) {
        auto& begin = meetings_of_.begin;
        begin.assign(ops + 1, 0);
        auto number_of = [&](const StageOp& at) {
            return static_cast<std::size_t>(ranks_[static_cast<std::size_t>(at.stage)].first + at.index);
        };
        const Meetings& meetings = programs_.meetings;
        for (std::size_t m = 0; m < meetings.size(); ++m) {
            missing_[m] = static_cast<std::int32_t>(meetings.of(m).size());
            for (const StageOp& at : meetings.of(m)) {
                ++begin[number_of(at) + 1];
                ++left(at);
            }
        }
        for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
        meetings_of_.values.resize(static_cast<std::size_t>(begin.back()));
        std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t m = 0; m < meetings.size(); ++m)
            for (const StageOp& at : meetings.of(m))
                meetings_of_.values[static_cast<std::size_t>(next[number_of(at)]++)] = static_cast<std::int32_t>(m);
    }
    std::int32_t& left(const StageOp& at) {
        return ranks_[static_cast<std::size_t>(at.stage)].meetings_left[static_cast<std::size_t>(at.index)];
    }
    /// Issues what the host may, then lets the head of each stream run. True when something changed.
    bool advance(Rank& rank) {
        bool has_moved = false;
        while (rank.issued < rank.ops() && may_issue(rank)) {
            ++rank.issued;
            has_moved = true;
        }
        for (std::size_t s = 0; s < rank.done.size(); ++s) {
            const std::vector<std::int32_t>& queue = rank.order->queues[s];
            auto& done = rank.done[s];
            while (done < static_cast<std::int32_t>(queue.size()) &&
                   finish(rank, s, queue[static_cast<std::size_t>(done)])) {
                rank.has_arrived[s] = 0;
                ++done;
                has_moved = true;
            }
        }
        return has_moved;
    }
    /// The host waits for the op before it when launches block or it was a HostSync, and runs ahead by a limit.
    bool may_issue(const Rank& rank) const {
        const std::int32_t next = rank.issued;
        if (next == 0) return true;
        if (rank.order->is_waited_for[static_cast<std::size_t>(next - 1)] && !rank.is_done(next - 1)) return false;
        const std::int32_t ahead = std::max(1, graph_.run_ahead);
        return next < ahead || rank.is_done(next - ahead);
    }
    bool finish(Rank& rank, std::size_t stream, std::int32_t op) {
        if (op >= rank.issued) return false;
        const auto i = static_cast<std::size_t>(op);
        if (!rank.has_arrived[stream]) {
            for (const std::int32_t earlier : rank.order->waits.of(i))
                if (!rank.is_done(earlier)) return false;
            rank.has_arrived[stream] = 1;
            for (const std::int32_t m : meetings_of_.of(static_cast<std::size_t>(rank.first) + i)) arrive(m);
        }
        return rank.meetings_left[i] == 0;
    }
    /// Nothing is buffered: a meeting takes place when all are there.
    void arrive(std::int32_t meeting) {
        const auto m = static_cast<std::size_t>(meeting);
        if (--missing_[m] > 0) return;
        for (const StageOp& at : programs_.meetings.of(m)) --left(at);
    }
    void report_stuck() const {
        std::string who;
        int listed = 0;
        for (std::int32_t stage = 0; stage < programs_.stages(); ++stage) {
            const Rank& rank = ranks_[static_cast<std::size_t>(stage)];
            std::int32_t stuck = 0;
            while (stuck < rank.ops() && rank.is_done(stuck)) ++stuck;
            if (stuck == rank.ops() || ++listed > 8) continue;
            const OpInstance& op = programs_.instance({stage, stuck});
            who += fmt::format("{}stage {} in {} (micro-batch {})", who.empty() ? "" : ", ", stage, op.op->name,
                               op.micro_batch);
        }
        if (!who.empty())
            throw InputError(
                fmt::format("the step would hang: {} wait for one another (a cycle); issue what they wait "
                            "for in the same order on both sides",
                            who));
    }

    const StepGraph& graph_;
    StagePrograms programs_;
    std::vector<std::int32_t> missing_;  // by meeting: ops that have not arrived
    std::vector<Order> orders_;          // by class
    std::vector<Rank> ranks_;            // by stage
    Lists meetings_of_;                  // by op of all stages
};

}  // namespace

void check_progress(const StepGraph& graph) { Run(graph).run(); }

}  // namespace lockstep::step
