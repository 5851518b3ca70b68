#include "step/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "step/dependencies.hpp"

namespace lockstep::step {
namespace {

class Scheduler {
public:
    Scheduler(const StepGraph& graph, const Program& program) : tracker_(graph) {
        for (const Stream& stream : graph.streams) schedule_.lanes.push_back({stream.lane, {}});
        for_each_op(graph, program, [&](const OpInstance& instance) { add(instance); });
    }
    Schedule finish() {
        for (ScheduledOp& op : schedule_.ops) op.first = needs_of(op, 0);
        for (ScheduledOp& op : schedule_.ops) op.steady = needs_of(op, 1);
        for (ScheduledOp& op : schedule_.ops) expect_steady(op);
        for (ScheduledOp& op : schedule_.ops)
            for (const Needs* needs : {&op.first, &op.steady})
                for (const Source& source : needs->sources)
                    if (schedule_.ops[source.position].lane != op.lane)
                        schedule_.ops[source.position].is_awaited = true;
        return std::move(schedule_);
    }

private:
    void add(const OpInstance& instance) {
        ScheduledOp op;
        op.instance = instance;
        op.lane = instance.op->stream.value;
        ScheduledLane& lane = schedule_.lanes[static_cast<std::size_t>(op.lane)];
        op.place_in_lane = static_cast<std::int32_t>(lane.ops.size());
        lane.ops.push_back(static_cast<std::int32_t>(schedule_.ops.size()));
        schedule_.ops.push_back(std::move(op));
    }
    std::int64_t count() const { return static_cast<std::int64_t>(schedule_.ops.size()); }

    /// Registers the op's run in `step`; must be called in issue order.
    Needs needs_of(const ScheduledOp& op, std::int64_t step) {
        const std::int64_t position = &op - schedule_.ops.data();
        Needs needs;
        for (const std::int64_t earlier : tracker_.next(op.instance, step * count() + position))
            add_source(earlier, step, needs);
        // The host does not issue past an op it waits for.
        if (host_sync_ >= 0) add_source(host_sync_, step, needs);
        if (std::holds_alternative<HostSync>(op.instance.op->kind)) host_sync_ = step * count() + position;
        std::erase_if(needs.waits, [&](const Wait& wait) { return wait.lane == op.lane; });
        return needs;
    }
    void add_source(std::int64_t sequence, std::int64_t step, Needs& needs) {
        const Source source{static_cast<std::int32_t>(sequence % count()),
                            static_cast<std::int32_t>(step - sequence / count())};
        const ScheduledOp& earlier = schedule_.ops[source.position];
        const auto lane_ops = static_cast<std::int64_t>(schedule_.lanes[earlier.lane].ops.size());
        const std::int64_t completed = earlier.place_in_lane + 1 - source.steps_back * lane_ops;
        needs.sources.push_back(source);
        const auto known = std::find_if(needs.waits.begin(), needs.waits.end(),
                                        [&](const Wait& wait) { return wait.lane == earlier.lane; });
        if (known == needs.waits.end())
            needs.waits.push_back({earlier.lane, completed});
        else
            known->count = std::max(known->count, completed);
    }
    void expect_steady(const ScheduledOp& op) {
        const Needs again = needs_of(op, 2);
        const auto is_same = [](const Wait& a, const Wait& b) { return a.lane == b.lane && a.count == b.count; };
        if (!std::equal(again.waits.begin(), again.waits.end(), op.steady.waits.begin(), op.steady.waits.end(),
                        is_same))
            throw LogicError(fmt::format("op {} waits for other ops in step 2 than in step 1", op.instance.op->name));
        for (const Source& source : op.steady.sources)
            if (source.steps_back > 1)
                throw LogicError(fmt::format("op {} depends on a step before the last", op.instance.op->name));
    }

    DependencyTracker tracker_;
    Schedule schedule_;
    std::int64_t host_sync_ = -1;
};

}  // namespace

Schedule make_schedule(const StepGraph& graph, const Program& program) { return Scheduler(graph, program).finish(); }

std::int32_t last_writer(const Schedule& schedule, TensorId tensor) {
    std::int32_t last = -1;
    for (std::size_t i = 0; i < schedule.ops.size(); ++i)
        for (const Write& write : schedule.ops[i].instance.op->out)
            if (write.tensor == tensor) last = static_cast<std::int32_t>(i);
    return last;
}

}  // namespace lockstep::step
