// The plans a search looks at: lists of values for each axis, and the plans that they make on a world.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "plan/plan.hpp"

namespace lockstep::plan {

/// What an experiment's `search:` says; an empty list leaves an axis to its default.
struct SpaceRequest {
    std::vector<int> tp, pp, vpp, cp, ep, zero;
    std::vector<std::int64_t> microbatch;
    std::vector<Recompute> recompute;
    std::vector<bool> sequence_parallel;
};

/// Reads {tp, pp, vpp, cp, ep, zero, microbatch, recompute, sequence_parallel}: a value or a list of different ones
/// each. A null node leaves all to the defaults. All errors go to `diagnostics`.
SpaceRequest read_space(const config::Node& node, config::Diagnostics& diagnostics);

/// A micro-batch beyond which the default space doesn't go.
inline constexpr std::int64_t largest_default_micro_batch = 8;
/// Tokens of a sequence that the default space leaves on a rank of context parallelism.
inline constexpr std::int64_t least_tokens_of_cp = 4096;

/// The space with its defaults filled in, for a world of `ranks`: divisors of it for tp, pp and cp (as far as a rank
/// keeps `least_tokens_of_cp` of the sequence), divisors of the experts for ep, numbers of chunks that divide the
/// blocks of a stage for vpp (0 in the list: these), micro-batches of 1 to 8, all of ZeRO's stages and kinds of
/// recomputation, sequence_parallel false and true.
SpaceRequest with_defaults(SpaceRequest space, const model::Model& model, int ranks);

/// One plan of a space.
struct Candidate {
    PlanRequest request;
    Plan plan;
};

struct Space {
    std::vector<Candidate> candidates;  ///< in the order of the lists, tp slowest
    std::int64_t combinations = 0;      ///< of the lists
    std::vector<std::string> refusals;  ///< why combinations make no plan: the first few different reasons
};

/// Every combination that makes a plan the model can be trained by. What `base` says beyond the axes is kept where it
/// means anything; accumulation follows from the batch. Not counted twice: ZeRO without data-parallel ranks,
/// sequence_parallel without tp, chunks without a pipeline.
Space make_space(const SpaceRequest& lists, const PlanRequest& base, BatchRequest batch, Optimizer optimizer,
                 const model::Model& model, const machine::Placement& placement);

/// "{tp: 8, pp: 8, vpp: 3, sequence_parallel: true, zero: 1, microbatch: 2, recompute: full}": what an experiment says
/// as its `plan:`, defaults left out.
std::string plan_text(const PlanRequest& request);

}  // namespace lockstep::plan
