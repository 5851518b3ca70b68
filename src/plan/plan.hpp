// How a training step is split over ranks and in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "config/document.hpp"
#include "machine/placement.hpp"
#include "model/model.hpp"
#include "plan/framework.hpp"
#include "plan/mesh.hpp"

namespace lockstep::plan {

enum class Optimizer { sgd_momentum, adam };
std::string_view to_string(Optimizer optimizer);  ///< "sgd-momentum", "adam"

/// Orders of forward and backward passes of a pipeline: all forward first (Huang et al. 2019); one forward, one
/// backward (Narayanan et al. 2019); the same with several chunks of layers a rank (Narayanan et al. 2021).
enum class Schedule { gpipe, one_forward_one_backward, interleaved };
std::string_view to_string(Schedule schedule);  ///< "gpipe", "1f1b", "interleaved"
/// What the backward pass computes again: nothing; the core of attention; each block from its input on (Korthikanti et
/// al. 2022).
enum class Recompute { none, selective, full };
std::string_view to_string(Recompute recompute);
/// How attention sees the whole sequence under context parallelism: keys and values go round a ring (Liu et al. 2023),
/// or all-to-alls exchange sequence for heads (Jacobs et al. 2023).
enum class ContextAlgorithm { ring, all_to_all };
std::string_view to_string(ContextAlgorithm algorithm);  ///< "ring", "all-to-all"

/// What an experiment's `plan:` says of the split beyond the mesh's extents.
struct Split {
    Schedule schedule = Schedule::one_forward_one_backward;
    int vpp = 1;  ///< chunks of layers on each pipeline stage; above 1 with Schedule::interleaved only
    /// Blocks of the model (Layer::repeat_group) in each chunk, in the order the pipeline visits them: chunk c of stage
    /// s is number c pp + s. Empty: all equal.
    std::vector<int> stage_blocks;
    bool sequence_parallel = false;  ///< activations between tp's products are split along the sequence
    bool async_tp = false;           ///< gathers and scatters of sequence parallelism in pieces beside the products
    ContextAlgorithm context = ContextAlgorithm::ring;
    Recompute recompute = Recompute::none;
    /// What data-parallel ranks share: 1 optimizer state, 2 and gradients, 3 and parameters (Rajbhandari et al. 2020).
    int zero = 0;
    bool zero_keep = false;                ///< with accumulation: gather in the first pass, scatter in the last only
    int prefetch = 1;                      ///< zero 3: blocks gathered ahead of the one that is computed
    bool reshard_after_forward = true;     ///< zero 3: free a block's parameters between its passes
    bool overlap_parameter_gather = true;  ///< zero 1 and 2: the next step begins while parameters are still gathered
};

/// Data parallelism is what remains of the world: dp replica = ranks / (tp pp cp ep).
struct Plan {
    Mesh mesh;
    Split split;
    std::int64_t micro_batch = 1;  ///< samples of one replica in one pass
    int accumulation = 1;          ///< passes per step; global batch = replicas micro_batch accumulation
    Bytes bucket{25.0 * 1048576};
    Bytes first_bucket{1.0 * 1048576};
    bool overlap = true;
    Optimizer optimizer = Optimizer::sgd_momentum;

    std::int64_t global_batch() const { return mesh.replicas() * micro_batch * accumulation; }
    /// Pipeline chunks over all stages.
    int chunks() const { return mesh.pp * split.vpp; }
};

/// What an experiment's `plan:` says, before the world size is known.
struct PlanRequest {
    int tp = 1, pp = 1, cp = 1, ep = 1;
    int replica = 1;                 ///< copies of the sharded state (hybrid sharding), or
    bool shard_within_node = false;  ///< as many as there are nodes
    Split split;
    std::int64_t microbatch = 0;  ///< samples of one pass as given; 0: what batch and accumulation leave
    Bytes bucket{25.0 * 1048576};
    Bytes first_bucket{1.0 * 1048576};
    bool overlap = true;
};
/// Reads {bucket, first_bucket, overlap, tp, pp, vpp, schedule, cp, ep, zero, microbatch, recompute,
/// sequence_parallel, async_tp, context, stage_blocks, zero_keep, prefetch, reshard_after_forward, replica,
/// shard_within_node, overlap_parameter_gather}; a null node is the default of everything. Defaults for bucket,
/// first_bucket (at most bucket) and overlap come from the framework. Values that contradict one another are refused
/// (sequence_parallel with tp 1 ...). All errors go to `diagnostics`.
PlanRequest read_plan(const config::Node& node, const Framework& framework, config::Diagnostics& diagnostics);

/// The batch as an experiment gives it: per rank (weak scaling) or global (strong scaling).
struct BatchRequest {
    std::int64_t per_rank = 0;  ///< samples per replica (Mesh::replicas) and step; 0 when global is given
    std::int64_t global = 0;
    std::optional<int> accumulation;  ///< passes of a step; none: what batch and microbatch leave, or 1
};

inline constexpr int max_ranks = 1'000'000;
inline constexpr std::int64_t max_global_batch = 1'000'000'000'000;  ///< samples of one step
inline constexpr int max_accumulation = 1'000'000;
inline constexpr int max_prefetch = 1'000;
inline constexpr int max_blocks = 1'000'000;  ///< of a chunk

/// The mesh of a world: dp = ranks / (tp pp cp ep replica). With shard_within_node, replica = the nodes of a pipeline
/// stage, so that dp stays inside one. Throws InputError naming the nearest values when ranks and sizes don't fit.
Mesh make_mesh(const PlanRequest& request, const machine::Placement& placement);

/// The plan for a world: its mesh, micro-batch = batch of a replica /
/// accumulation, or, when `microbatch` is given and accumulation is not, accumulation = batch of a replica /
/// microbatch. With shard_within_node, replica = the nodes of a pipeline stage, so that dp stays inside one. Throws
/// InputError when ranks, batch and plan don't fit, naming the nearest values that do.
Plan make_plan(const PlanRequest& request, const BatchRequest& batch, Optimizer optimizer,
               const machine::Placement& placement);

/// Refuses, with all reasons at once, a plan that this model can't be trained by: tp that divides not heads, kv_heads,
/// ffn or vocab; more chunks than blocks, or blocks that don't divide into chunks without stage_blocks; cp and
/// sequence_parallel where the sequence doesn't divide; what needs a sequence with a model of images; ep without
/// experts
/// ... Each names the values that are allowed.
void check_plan(const Plan& plan, const model::Model& model);
/// The reasons of check_plan, one each; empty when the model can be trained by the plan.
std::vector<std::string> plan_refusals(const Plan& plan, const model::Model& model);

}  // namespace lockstep::plan
