// How a training step is split over ranks and in time.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "config/document.hpp"
#include "machine/placement.hpp"
#include "model/model.hpp"
#include "plan/framework.hpp"
#include "plan/mesh.hpp"

namespace lockstep::plan {

enum class Optimizer { sgd_momentum, adam };
std::string_view to_string(Optimizer optimizer);  ///< "sgd-momentum", "adam"

/// Data parallelism is what remains of the world: dp = ranks / (tp pp cp ep). This version runs plans with tp = pp = cp
/// = ep = 1, zero 0.
struct Plan {
    Mesh mesh;
    std::int64_t micro_batch = 1;  ///< samples of one dp replica in one pass
    int accumulation = 1;          ///< passes per step; global batch = dp micro_batch accumulation
    Bytes bucket{25.0 * 1048576};
    Bytes first_bucket{1.0 * 1048576};
    bool overlap = true;
    Optimizer optimizer = Optimizer::sgd_momentum;

    std::int64_t global_batch() const { return mesh.dp * micro_batch * accumulation; }
};

/// What an experiment's `plan:` says, before the world size is known.
struct PlanRequest {
    int tp = 1, pp = 1, cp = 1, ep = 1, zero = 0;
    std::int64_t microbatch = 0;  ///< samples of one pass as given; 0: what batch and accumulation leave
    Bytes bucket{25.0 * 1048576};
    Bytes first_bucket{1.0 * 1048576};
    bool overlap = true;
};
/// Reads {bucket, first_bucket, overlap, tp, pp, vpp, schedule, cp, ep, zero, microbatch, recompute,
/// sequence_parallel}; a null node is the default of everything. Defaults for bucket, first_bucket (at most bucket) and
/// overlap come from the framework. What this version can't execute is refused with the allowed value: tp, pp, vpp, cp
/// and ep above 1, zero above 0, recompute other than none, sequence_parallel true. All errors go to `diagnostics`.
PlanRequest read_plan(const config::Node& node, const Framework& framework, config::Diagnostics& diagnostics);

/// The batch as an experiment gives it: per rank (weak scaling) or global (strong scaling).
struct BatchRequest {
    std::int64_t per_rank = 0;  ///< samples per dp replica and step; 0 when global is given
    std::int64_t global = 0;
    int accumulation = 1;
};

inline constexpr int max_ranks = 1'000'000;
inline constexpr std::int64_t max_global_batch = 1'000'000'000'000;  ///< samples of one step

/// The plan for a world of `ranks`: dp = ranks / (tp pp cp ep), micro-batch = batch of a replica / accumulation.
/// Throws InputError when ranks, batch and plan don't fit, naming the nearest values that do.
Plan make_plan(const PlanRequest& request, const BatchRequest& batch, Optimizer optimizer, int ranks);

}  // namespace lockstep::plan
