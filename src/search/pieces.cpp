#include "search/pieces.hpp"

#include <algorithm>

#include "model/first_blocks.hpp"
#include "plan/stages.hpp"

namespace lockstep::search {

namespace {

/// Blocks of a stage in the graphs that a line is drawn through. What ZeRO 2 and 3 scatter and gather in each pass is
/// that of the neighbouring blocks: with few blocks there are fewer of these.
std::vector<int> block_counts(const plan::Plan& plan) {
    if (plan.mesh.pp == 1) return {2, 4};
    return plan.split.zero >= 2 ? std::vector{1, 3, 4} : std::vector{1, 2};
}

int stages_of_small(const plan::Plan& plan) { return std::min(plan.mesh.pp, 3); }

/// The plan on fewer stages, all of whose passes are in flight when the first goes back.
plan::Plan small_plan(const plan::Plan& plan) {
    plan::Plan small = plan;
    small.mesh.pp = stages_of_small(plan);
    small.split.vpp = 1;
    small.split.stage_blocks.clear();
    small.split.schedule = small.mesh.pp == 1 ? plan::Schedule::one_forward_one_backward : plan::Schedule::gpipe;
    small.accumulation = 3;
    return small;
}

/// Data parallelism doesn't change a pass until it scatters or gathers in each.
bool shares_in_passes(const plan::Plan& plan) { return plan.split.zero >= 2; }

plan::Plan plan_of_passes(const plan::Plan& plan) {
    plan::Plan small = small_plan(plan);
    if (shares_in_passes(plan)) return small;
    small.mesh.dp = small.mesh.replica = 1;
    small.split.zero = 0;
    small.split.overlap_parameter_gather = true;
    return small;
}

plan::Plan plan_of_step(const plan::Plan& plan) {
    plan::Plan small = small_plan(plan);
    small.micro_batch = 1;
    small.split.recompute = plan::Recompute::none;
    return small;
}

void add(PassLines& lines, double blocks, const StageProbe& probe) {
    const PassProbe& pass = probe.pass;
    lines.forward.add(blocks, pass.forward);
    lines.backward.add(blocks, pass.backward);
    lines.forward_compute.add(blocks, pass.forward_compute);
    lines.backward_compute.add(blocks, pass.backward_compute);
    lines.recomputed.add(blocks, pass.recomputed);
    lines.early = pass.early;
    lines.kept.add(blocks, probe.memory.kept);
    lines.transient.add(blocks, probe.memory.transient);
}

void add(StepLines& lines, double blocks, const StageProbe& probe) {
    lines.sync.add(blocks, probe.step.sync);
    lines.sync_compute.add(blocks, probe.step.sync_compute);
    lines.optimizer.add(blocks, probe.step.optimizer);
    lines.gather.add(blocks, probe.step.gather);
    lines.fixed.add(blocks, probe.memory.fixed);
    lines.first_gather = probe.step.first_gather;
}

/// Fills the lines of first, middle and last stage.
template <class Lines, class Add>
void fill(ByStage<Lines>& pieces, int stages, Add&& add) {
    add(pieces.first, std::size_t{0});
    add(pieces.last, static_cast<std::size_t>(stages - 1));
    add(pieces.middle, static_cast<std::size_t>(stages > 2 ? 1 : 0));
}

void clear_once(PassLines& lines) {
    for (const auto line : {&PassLines::forward, &PassLines::backward, &PassLines::forward_compute,
                            &PassLines::backward_compute, &PassLines::recomputed})
        (lines.*line).remove_once();
}

}  // namespace

Pieces::Pieces(const Subject& subject) : subject_(subject) {
    for (const int blocks : {2, 3, 4, 6, 8, 9, 12}) {
        if (blocks > plan::block_count(subject.experiment.model)) continue;
        experiment::Experiment small = subject.experiment;
        small.model = model::with_first_blocks(subject.experiment.model, blocks);
        small_.emplace(blocks, std::move(small));
    }
}

const experiment::Experiment& Pieces::with_blocks(int blocks) const { return small_.at(blocks); }

template <class T, class Make>
const T& Pieces::made(Slots<T>& slots, const Key& key, Make&& make) {
    Slot<T>* slot = nullptr;
    {
        const std::lock_guard lock(mutex_);
        auto& known = slots[key];
        if (!known) known = std::make_unique<Slot<T>>();
        slot = known.get();
    }
    std::call_once(slot->made, [&] { slot->value = make(); });
    return slot->value;
}

const PassPieces& Pieces::of_passes(const plan::Plan& plan) {
    const bool shares = shares_in_passes(plan);
    const plan::Mesh& m = plan.mesh;
    const Key key{m.tp,
                  m.cp,
                  m.ep,
                  stages_of_small(plan),
                  shares ? m.dp : 1,
                  shares ? m.replica : 1,
                  plan.split.sequence_parallel,
                  shares ? plan.split.zero : 0,
                  plan.micro_batch,
                  static_cast<int>(plan.split.recompute)};
    return made(passes_, key, [&] { return make_pass_pieces(plan); });
}

const StepPieces& Pieces::of_step(const plan::Plan& plan) {
    const plan::Mesh& m = plan.mesh;
    const Key key{
        m.tp, m.cp, m.ep, stages_of_small(plan), m.dp, m.replica, plan.split.sequence_parallel, plan.split.zero, 1, 0};
    return made(steps_, key, [&] { return make_step_pieces(plan); });
}

PassPieces Pieces::make_pass_pieces(const plan::Plan& of) const {
    const plan::Plan plan = plan_of_passes(of);
    const int stages = plan.mesh.pp;
    PassPieces pieces;
    for (const int blocks : block_counts(plan)) {
        const auto& small = with_blocks(stages * blocks);
        const auto probes = probe(subject_, small, plan, Measured::all_memory);
        ++simulated_;
        pieces.message = probes.front().message;
        fill(pieces, stages, [&](PassLines& lines, std::size_t stage) { add(lines, blocks, probes[stage]); });
    }
    if (stages < 3) clear_once(pieces.middle);
    return pieces;
}

StepPieces Pieces::make_step_pieces(const plan::Plan& of) const {
    const plan::Plan plan = plan_of_step(of);
    const int stages = plan.mesh.pp;
    StepPieces pieces;
    for (const int blocks : block_counts(plan)) {
        const auto probes = probe(subject_, with_blocks(stages * blocks), plan, Measured::fixed_memory);
        ++simulated_;
        fill(pieces, stages, [&](StepLines& lines, std::size_t stage) { add(lines, blocks, probes[stage]); });
    }
    return pieces;
}

}  // namespace lockstep::search
