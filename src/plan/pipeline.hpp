// The order in which a pipeline stage passes micro-batches forward and backward.
#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace lockstep::plan {

/// A pass of one micro-batch through one of the stage's chunks of layers.
struct PipelineSlot {
    enum class Kind { forward, backward } kind = Kind::forward;
    int chunk = 0;  ///< of the stage, 0 to vpp - 1; it is chunk number `chunk` pp + stage of the pipeline
    int micro_batch = 0;
    bool operator==(const PipelineSlot&) const = default;
};

/// The passes of one step on `stage`: each (chunk, micro-batch) forward once and backward once.
/// GPipe (Huang et al. 2019): all forward, then all backward, the last micro-batch first.
/// 1F1B (Narayanan et al. 2019): min(pp - 1 - stage, m) forward passes, then one forward and one backward in turn, then
/// the backward passes that are left. At most pp - stage micro-batches are in flight; bubble (pp - 1) / m of the ideal
/// time.
/// Interleaved (Narayanan et al. 2021): the same over passes in groups of pp micro-batches a chunk, chunks in order
/// forward and in reverse backward; min((pp - stage - 1) 2 + (vpp - 1) pp, m vpp) forward passes first. Bubble
/// (pp - 1) / (m vpp).
/// Throws InputError when `micro_batches` is no multiple of pp under the interleaved schedule, and LogicError for a
/// stage outside the pipeline or several chunks under another schedule.
std::vector<PipelineSlot> pipeline_order(Schedule schedule, int pp, int vpp, int stage, int micro_batches);

/// The most micro-batches of a chunk that are between their forward and their backward pass at once (while the backward
/// pass runs included): the copies of its activations that are alive.
int most_in_flight(const std::vector<PipelineSlot>& order, int chunk);

}  // namespace lockstep::plan
