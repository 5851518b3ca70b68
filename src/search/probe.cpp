#include "search/probe.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "drive/build.hpp"
#include "sim/predict.hpp"

namespace lockstep::search {

namespace {

constexpr std::int32_t observed_pass = 1;  // neither the first nor the last

machine::Placement placed_like(const machine::Placement& whole, int ranks) {
    machine::Placement placement = whole;
    placement.ranks = ranks;
    return placement;
}

/// When the ops of a pass ran.
struct Extent {
    Nanoseconds begin{INT64_MAX}, end{INT64_MIN};
    Nanoseconds busy;  ///< kernels

    bool is_there() const { return end > begin; }
    bool has_begun() const { return begin.count != INT64_MAX; }
    Seconds length() const { return is_there() ? (end - begin).seconds() : Seconds{}; }
};

/// Shortest time of a collective over the ranks that take part: that of who came last.
using OwnTimes = std::map<std::pair<std::int32_t, std::int32_t>, Nanoseconds>;

bool is_gather(const step::Op& op) {
    const auto* collective = std::get_if<step::Collective>(&op.kind);
    return collective != nullptr && collective->kind == step::CollectiveKind::all_gather &&
           (op.phase == step::Phase::optimizer || op.name.ends_with(".gather_once"));
}

/// Gathers and scatters of parameters and gradients: they run ahead of the pass that needs them, or behind it.
bool is_of_data_parallelism(const step::StepGraph& graph, const step::Op& op) {
    if (!std::holds_alternative<step::Collective>(op.kind)) return false;
    const std::string& stream = graph.stream(op.stream).name;
    return op.phase == step::Phase::gradient_sync || stream.find("fsdp") != std::string::npos;
}

class StageReader {
public:
    StageReader(const step::StepGraph& graph, const OwnTimes& own) : graph_(graph), own_(own) {}

    void read(const step::StepRecord& record) {
        for (const step::Span& span : record.spans) read(span, graph_.op(span.op));
    }
    PassProbe pass() const {
        PassProbe pass;
        pass.forward = forward_.length();
        pass.backward = backward_.length();
        if (early_.is_there() && first_late_ > early_.end) {
            // Between recomputation and what follows the stage waits for a message: that is the pipeline's.
            pass.early = early_.length();
            pass.backward -= (first_late_ - early_.end).seconds();
        }
        if (graph_.mesh.pp == 1 && backward_before_.is_there()) {
            // Passes follow one another: what is between two of them belongs to them.
            pass.forward = (forward_.end - backward_before_.end).seconds();
            pass.backward = (backward_.end - forward_.end).seconds();
        }
        pass.forward_compute = forward_.busy.seconds();
        pass.backward_compute = backward_.busy.seconds();
        pass.recomputed = recomputed_.seconds();
        return pass;
    }
    StepProbe step() const { return step_; }

private:
    void read(const step::Span& span, const step::Op& op) {
        if (std::holds_alternative<step::HostSync>(op.kind) || std::holds_alternative<step::StreamWait>(op.kind))
            return;
        if (const auto* group = std::get_if<step::P2PGroup>(&op.kind)) {
            if (!group->receives.empty()) received_[op.phase == step::Phase::forward ? 0 : 1] = span.end;
            return;
        }
        if (is_gather(op)) return add_gather(span);
        const bool is_kernel = !step::is_communication(op);
        // What is scattered in every pass is part of the pass, as far as the pass waits for it.
        if (op.phase == step::Phase::optimizer || op.is_last_micro_batch_only) {
            Seconds& sum = op.phase == step::Phase::optimizer ? step_.optimizer
                           : is_kernel                        ? step_.sync_compute
                                                              : step_.sync;
            sum += is_kernel ? (span.end - span.start).seconds() : own_time(span);
        } else if (op.phase != step::Phase::input && !is_of_data_parallelism(graph_, op)) {
            read_pass(span, op, is_kernel);
        }
        if (is_kernel) kernel_end_ = std::max(kernel_end_, span.end);
    }

    void read_pass(const step::Span& span, const step::Op& op, bool is_kernel) {
        const bool is_forward = op.phase == step::Phase::forward;
        if (!is_forward && span.micro_batch == observed_pass - 1)
            backward_before_.begin = std::min(backward_before_.begin, span.start),
            backward_before_.end = std::max(backward_before_.end, span.end);
        if (span.micro_batch != observed_pass) return;
        const bool is_again = op.name.ends_with(".recompute");
        Extent& extent = is_forward ? forward_ : backward_;
        // A pass begins when the stage is free and has received what it begins with.
        if (!extent.has_begun())
            extent.begin = is_again ? kernel_end_ : std::max(kernel_end_, received_[is_forward ? 0 : 1]);
        extent.end = std::max(extent.end, span.end);
        if (is_kernel) extent.busy = extent.busy + (span.end - span.start);
        if (is_forward) return;
        if (is_again && is_kernel) recomputed_ = recomputed_ + (span.end - span.start);
        if (!is_again) first_late_ = std::min(first_late_, span.start);
        if (is_again && first_late_.count == INT64_MAX) early_.begin = extent.begin, early_.end = span.end;
    }

    void add_gather(const step::Span& span) {
        const Seconds time = own_time(span);
        if (step_.gather == Seconds{}) step_.first_gather = time;
        step_.gather += time;
    }
    Seconds own_time(const step::Span& span) const {
        const auto known = own_.find({span.op, span.micro_batch});
        return known == own_.end() ? Seconds{} : known->second.seconds();
    }

    const step::StepGraph& graph_;
    const OwnTimes& own_;
    Nanoseconds kernel_end_, received_[2];  ///< so far; received forward and backward
    Extent forward_, backward_, backward_before_;
    Nanoseconds recomputed_;
    Extent early_;  ///< recomputation at the begin of the backward pass
    Nanoseconds first_late_{INT64_MAX};
    StepProbe step_;
};

OwnTimes own_times(const step::StepGraph& graph, const std::vector<step::StepRecord>& records) {
    OwnTimes own;
    for (const step::StepRecord& record : records)
        for (const step::Span& span : record.spans) {
            if (!std::holds_alternative<step::Collective>(graph.op(span.op).kind)) continue;
            const Nanoseconds time = span.end - span.start;
            const auto [known, is_new] = own.try_emplace({span.op, span.micro_batch}, time);
            if (!is_new) known->second = std::min(known->second, time);
        }
    return own;
}

std::vector<StageMemory> measure(const step::StepGraph& graph, Measured measured) {
    return measured == Measured::all_memory ? stage_memory(graph) : fixed_memory(graph);
}

Bytes message_of(const step::StepGraph& graph, const step::RankClass& rank_class) {
    Bytes bytes;
    for (const step::Issue& issue : rank_class.program.issues)
        for (const step::Op& op : graph.block(issue.block).ops)
            if (const auto* group = std::get_if<step::P2PGroup>(&op.kind))
                for (const step::Message& message : group->sends)
                    if (message.peer.offset > 0) bytes = std::max(bytes, graph.tensor(message.tensor).bytes());
    return bytes;
}

}  // namespace

std::vector<StageProbe> probe(const Subject& subject, const experiment::Experiment& small, const plan::Plan& plan,
                              Measured measured) {
    if (plan.accumulation <= observed_pass + 1) throw LogicError("a probe without a pass in the middle");
    const machine::Placement placement = placed_like(subject.placement, plan.mesh.ranks());
    const step::StepGraph graph = drive::build_unchecked(small, plan, placement);
    constexpr int steps = 2;
    auto records = sim::predict(graph, subject.costs, steps,
                                {.device = subject.machine.device.name, .host_per_op = subject.costs.host_per_op()});
    std::erase_if(records, [](const step::StepRecord& record) { return record.step != steps - 1; });
    const OwnTimes own = own_times(graph, records);
    const auto memory = measure(graph, measured);
    std::vector<StageProbe> stages(static_cast<std::size_t>(plan.mesh.pp));
    for (const step::StepRecord& record : records) {
        const auto stage = static_cast<std::size_t>(graph.mesh.coordinates(record.rank).pp);
        if (stages[stage].pass.forward > Seconds{}) continue;  // another rank of the stage
        StageReader reader(graph, own);
        reader.read(record);
        stages[stage] = {reader.pass(), reader.step(), memory[stage], message_of(graph, graph.rank_class(record.rank))};
    }
    return stages;
}

}  // namespace lockstep::search
