#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"
#include "step/dependencies.hpp"
#include "step/stage_programs.hpp"

namespace lockstep::step {

namespace {

/// What an op of a class waits for: earlier ops of the same rank.
using Waits = std::vector<std::vector<std::int32_t>>;

Waits waits_of(const StepGraph& graph, const std::vector<OpInstance>& ops) {
    DependencyTracker tracker(graph);
    Waits waits(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i)
        for (const std::int64_t earlier : tracker.next(ops[i], static_cast<std::int64_t>(i)))
            waits[i].push_back(static_cast<std::int32_t>(earlier));
    return waits;
}

/// One rank of a stage: its host issues in order, its streams run in order.
struct Rank {
    std::vector<char> is_done;
    std::vector<std::int32_t> meetings_left;       // by op: others that have not arrived
    std::vector<std::vector<std::int32_t>> of_op;  // by op: its meetings
    std::vector<std::deque<std::int32_t>> queue;   // by stream
    std::vector<char> has_arrived;                 // by op: ready, waits for its meetings only
    std::size_t issued = 0;
};

class Run {
public:
    explicit Run(const StepGraph& graph)
        : graph_(graph), programs_(unroll(graph)), arrived_(programs_.meetings.size()) {
        for (const auto& ops : programs_.of_class) waits_.push_back(waits_of(graph, ops));
        for (std::int32_t stage = 0; stage < programs_.stages(); ++stage) {
            const std::size_t count = programs_.ops(stage).size();
            ranks_.push_back({std::vector<char>(count), std::vector<std::int32_t>(count),
                              std::vector<std::vector<std::int32_t>>(count),
                              std::vector<std::deque<std::int32_t>>(graph.streams.size()), std::vector<char>(count),
                              0});
        }
        for (std::size_t m = 0; m < programs_.meetings.size(); ++m)
            for (const StageOp& at : programs_.meetings[m].ops) {
                Rank& rank = ranks_[static_cast<std::size_t>(at.stage)];
                rank.of_op[static_cast<std::size_t>(at.index)].push_back(static_cast<std::int32_t>(m));
                ++rank.meetings_left[static_cast<std::size_t>(at.index)];
            }
    }

    void run() {
        bool has_moved = true;
        while (has_moved) {
            has_moved = false;
            for (std::int32_t stage = 0; stage < programs_.stages(); ++stage)
                while (advance(stage)) has_moved = true;
        }
        report_stuck();
    }

private:
    /// Issues what the host may, then lets the head of each stream run. True when something changed.
    bool advance(std::int32_t stage) {
        Rank& rank = ranks_[static_cast<std::size_t>(stage)];
        bool has_moved = false;
        while (rank.issued < rank.is_done.size() && may_issue(stage, rank)) {
            const auto index = static_cast<std::int32_t>(rank.issued++);
            rank.queue[programs_.op({stage, index}).stream.index()].push_back(index);
            has_moved = true;
        }
        for (auto& queue : rank.queue)
            while (!queue.empty() && finish_head(stage, rank, queue.front())) {
                queue.pop_front();
                has_moved = true;
            }
        return has_moved;
    }
    /// The host waits for the op before it when launches block or it was a HostSync, and runs ahead by a limit.
    bool may_issue(std::int32_t stage, const Rank& rank) const {
        const std::size_t next = rank.issued;
        if (next == 0) return true;
        const Op& before = programs_.op({stage, static_cast<std::int32_t>(next - 1)});
        if ((graph_.is_blocking_launch || std::holds_alternative<HostSync>(before.kind)) && !rank.is_done[next - 1])
            return false;
        const auto ahead = static_cast<std::size_t>(std::max(1, graph_.run_ahead));
        return next < ahead || rank.is_done[next - ahead] != 0;
    }
    bool finish_head(std::int32_t stage, Rank& rank, std::int32_t index) {
        const auto i = static_cast<std::size_t>(index);
        const Waits& waits = waits_[programs_.class_of[static_cast<std::size_t>(stage)].index()];
        if (!rank.has_arrived[i]) {
            for (const std::int32_t earlier : waits[i])
                if (!rank.is_done[static_cast<std::size_t>(earlier)]) return false;
            rank.has_arrived[i] = 1;
            for (const std::int32_t m : rank.of_op[i]) arrive(m);
        }
        if (rank.meetings_left[i] > 0) return false;
        rank.is_done[i] = 1;
        return true;
    }
    /// Nothing is buffered: a meeting takes place when all are there.
    void arrive(std::int32_t m) {
        const Meeting& meeting = programs_.meetings[static_cast<std::size_t>(m)];
        if (++arrived_[static_cast<std::size_t>(m)] < meeting.ops.size()) return;
        for (const StageOp& at : meeting.ops)
            --ranks_[static_cast<std::size_t>(at.stage)].meetings_left[static_cast<std::size_t>(at.index)];
    }
    void report_stuck() const {
        std::string who;
        int listed = 0;
        for (std::int32_t stage = 0; stage < programs_.stages(); ++stage) {
            const Rank& rank = ranks_[static_cast<std::size_t>(stage)];
            const auto stuck = std::find(rank.is_done.begin(), rank.is_done.end(), 0);
            if (stuck == rank.is_done.end() || ++listed > 8) continue;
            const auto index = static_cast<std::int32_t>(stuck - rank.is_done.begin());
            who += fmt::format("{}stage {} in {} (micro-batch {})", who.empty() ? "" : ", ", stage,
                               programs_.op({stage, index}).name,
                               programs_.ops(stage)[static_cast<std::size_t>(index)].micro_batch);
        }
        if (!who.empty())
            throw InputError(
                fmt::format("the step would hang: {} wait for one another (a cycle); issue what they wait for "
                            "in the same order on both sides",
                            who));
    }

    const StepGraph& graph_;
    StagePrograms programs_;
    std::vector<Waits> waits_;  // by class
    std::vector<Rank> ranks_;   // by stage
    std::vector<std::size_t> arrived_;
};

}  // namespace

void check_progress(const StepGraph& graph) { Run(graph).run(); }

}  // namespace lockstep::step
