#include "search/estimate.hpp"

#include <algorithm>

#include "plan/shortened.hpp"
#include "plan/stages.hpp"
#include "search/message_times.hpp"

namespace lockstep::search {

namespace {

/// The chunks of a plan, by number in the order in which the pipeline visits them.
class Chunks {
public:
    Chunks(const plan::Plan& plan, int blocks, const PassPieces& pieces)
        : plan_(plan), blocks_(plan::blocks_of_chunks(blocks, plan)), pieces_(pieces) {}

    const PassLines& lines(int number) const {
        if (number == 0) return pieces_.first;
        return number == plan_.chunks() - 1 ? pieces_.last : pieces_.middle;
    }
    double blocks(int number) const { return blocks_[static_cast<std::size_t>(number)]; }
    int number(int stage, int chunk) const { return chunk * plan_.mesh.pp + stage; }

    template <class Q>
    Q at(int number, Line<Q> PassLines::*line) const {
        return std::max(Q{}, (lines(number).*line).at(blocks(number)));
    }
    /// Of a forward or backward pass. What ZeRO 3 gathers before a chunk's first block it gathers beside other chunks,
    /// where a stage has several.
    Seconds time(int number, Line<Seconds> PassLines::*line) const {
        if (plan_.split.zero < 3 || plan_.split.vpp == 1) return at(number, line);
        constexpr double far = 1000;
        const Line<Seconds>& between = pieces_.middle.*line;
        const Seconds each = between.at(far + 1) - between.at(far);
        const Seconds once = (lines(number).*line).at(far) - between.at(far);
        return std::max(Seconds{}, once + blocks(number) * each);
    }
    /// Over the chunks of a stage.
    template <class Q>
    Q sum(int stage, Line<Q> PassLines::*line) const {
        Q all{};
        for (int chunk = 0; chunk < plan_.split.vpp; ++chunk) all += at(number(stage, chunk), line);
        return all;
    }
    double blocks_of_stage(int stage) const {
        double all = 0;
        for (int chunk = 0; chunk < plan_.split.vpp; ++chunk) all += blocks(number(stage, chunk));
        return all;
    }

private:
    const plan::Plan& plan_;
    std::vector<int> blocks_;
    const PassPieces& pieces_;
};

const StepLines& lines_of_stage(const plan::Plan& plan, const StepPieces& pieces, int stage) {
    if (stage == 0) return pieces.first;
    return stage == plan.mesh.pp - 1 ? pieces.last : pieces.middle;
}

std::vector<StageTimes> stage_times(const plan::Plan& plan, const Chunks& chunks,
                                    const std::vector<Seconds>& messages) {
    std::vector<StageTimes> stages(static_cast<std::size_t>(plan.mesh.pp));
    for (int s = 0; s < plan.mesh.pp; ++s) {
        StageTimes& stage = stages[static_cast<std::size_t>(s)];
        for (int chunk = 0; chunk < plan.split.vpp; ++chunk) {
            stage.forward.push_back(chunks.time(chunks.number(s, chunk), &PassLines::forward));
            stage.backward.push_back(chunks.time(chunks.number(s, chunk), &PassLines::backward));
            stage.early.push_back(chunks.lines(chunks.number(s, chunk)).early);
        }
        stage.message = messages[static_cast<std::size_t>(s)];
    }
    return stages;
}

/// Begin and end of each stage's passes in a step of all passes.
std::vector<StageExtent> extents_of(const plan::Plan& plan, const std::vector<StageTimes>& stages) {
    if (plan.mesh.pp == 1) {
        const Seconds pass = stages.front().forward.front() + stages.front().backward.front();
        return {{Seconds{}, static_cast<double>(plan.accumulation) * pass}};
    }
    const auto passes = plan::shortened_passes(plan);
    if (!passes) return pipeline_extents(plan.split.schedule, stages, plan.accumulation);
    const auto fewer = pipeline_extents(plan.split.schedule, stages, passes->fewer);
    auto more = pipeline_extents(plan.split.schedule, stages, passes->more);
    for (std::size_t s = 0; s < more.size(); ++s) {
        more[s].begin = passes->extrapolated(fewer[s].begin, more[s].begin);
        more[s].end = passes->extrapolated(fewer[s].end, more[s].end);
    }
    return more;
}

/// What gradients and parameters take on a stage beyond its passes. With overlap, gradients travel beside the last
/// backward pass but for its first block, whose gradients come first, and parameters beside the first forward pass.
Seconds synchronisation(const plan::Plan& plan, const StepLines& lines, double blocks, Seconds forward,
                        Seconds backward) {
    const Seconds sync = std::max(Seconds{}, lines.sync.at(blocks));
    const Seconds compute = std::max(Seconds{}, lines.sync_compute.at(blocks));
    const double beside = blocks > 0 ? (blocks - 1) / blocks : 0;
    const Seconds last = blocks > 0 ? sync / blocks : sync;
    const Seconds exposed = plan.overlap ? std::max(last, sync - beside * backward) : sync;
    const Seconds gather = std::max(Seconds{}, lines.gather.at(blocks));
    const Seconds gathered = plan.split.overlap_parameter_gather || plan.split.zero == 3
                                 ? std::min(gather, std::max(lines.first_gather, gather - beside * forward))
                                 : gather;
    return exposed + compute + gathered;
}

/// What a stage's passes keep and need at the peak.
Bytes activations(const plan::Plan& plan, const Chunks& chunks, int stage) {
    const plan::Schedule schedule = plan.mesh.pp == 1 ? plan::Schedule::one_forward_one_backward : plan.split.schedule;
    // More passes than fill the pipeline keep no more, but under GPipe, which keeps them all.
    const auto shortened = plan::shortened_passes(plan);
    const bool keeps_all = schedule == plan::Schedule::gpipe;
    const int passes = shortened && !keeps_all ? shortened->fewer : plan.accumulation;
    std::vector<Bytes> kept;
    Bytes transient;
    for (int chunk = 0; chunk < plan.split.vpp; ++chunk) {
        kept.push_back(chunks.at(chunks.number(stage, chunk), &PassLines::kept));
        transient = std::max(transient, chunks.at(chunks.number(stage, chunk), &PassLines::transient));
    }
    Bytes now, most;
    for (const plan::PipelineSlot& slot : plan::pipeline_order(schedule, plan.mesh.pp, plan.split.vpp, stage, passes)) {
        const Bytes size = kept[static_cast<std::size_t>(slot.chunk)];
        if (slot.kind == plan::PipelineSlot::Kind::forward)
            now += size;
        else
            now -= size;
        most = std::max(most, now);
    }
    return most + transient;
}

}  // namespace

Estimator::Estimator(const Subject& subject, Pieces& pieces)
    : subject_(subject), pieces_(pieces), blocks_(plan::block_count(subject.experiment.model)) {}

const std::vector<Seconds>& Estimator::messages(const plan::Mesh& mesh, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = messages_.try_emplace(std::tuple(mesh.tp, mesh.cp, mesh.ep, mesh.pp, bytes.value));
    if (is_new) known->second = message_times(subject_, mesh, bytes);
    return known->second;
}

Bytes Estimator::memory(const plan::Plan& plan) {
    const Chunks chunks(plan, blocks_, pieces_.of_passes(plan));
    const StepPieces& step = pieces_.of_step(plan);
    Bytes most;
    // The first stage has most passes in flight, the last the logits; those between have less than the second.
    for (const int stage : {0, 1, plan.mesh.pp - 1}) {
        if (stage < 0 || stage >= plan.mesh.pp) continue;
        const StepLines& lines = lines_of_stage(plan, step, stage);
        most = std::max(most, lines.fixed.at(chunks.blocks_of_stage(stage)) + activations(plan, chunks, stage));
    }
    return most;
}

Estimate Estimator::estimate(const plan::Plan& plan) {
    const PassPieces& pass = pieces_.of_passes(plan);
    const StepPieces& step = pieces_.of_step(plan);
    const Chunks chunks(plan, blocks_, pass);
    const auto stages = stage_times(plan, chunks, messages(plan.mesh, pass.message));
    const auto extents = extents_of(plan, stages);
    Estimate best;
    for (int s = 0; s < plan.mesh.pp; ++s) {
        const StepLines& lines = lines_of_stage(plan, step, s);
        const double blocks = chunks.blocks_of_stage(s), passes = plan.accumulation;
        Seconds forward, backward;
        for (const Seconds time : stages[static_cast<std::size_t>(s)].forward) forward += time;
        for (const Seconds time : stages[static_cast<std::size_t>(s)].backward) backward += time;
        const Seconds compute =
            chunks.sum(s, &PassLines::forward_compute) + chunks.sum(s, &PassLines::backward_compute);
        TimeParts parts;
        parts.recomputation = passes * chunks.sum(s, &PassLines::recomputed);
        parts.compute = passes * compute - parts.recomputation;
        parts.communication = std::max(Seconds{}, passes * (forward + backward - compute));
        const StageExtent& extent = extents[static_cast<std::size_t>(s)];
        parts.bubble = std::max(Seconds{}, extent.end - extent.begin - passes * (forward + backward));
        parts.synchronisation = synchronisation(plan, lines, blocks, forward, backward);
        parts.optimizer = std::max(Seconds{}, lines.optimizer.at(blocks));
        if (parts.total() > best.parts.total()) best.parts = parts;
    }
    best.memory = memory(plan);
    return best;
}

}  // namespace lockstep::search
