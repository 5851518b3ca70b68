// A plan's step time and memory from the pieces of its stages: what ranks thousands of plans a second.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "plan/plan.hpp"
#include "search/pieces.hpp"
#include "search/pipeline_time.hpp"

namespace lockstep::search {

/// Where the step time of the stage that takes longest goes; they sum to it.
struct TimeParts {
    Seconds compute;          ///< forward and backward passes
    Seconds recomputation;    ///< forward passes once more
    Seconds communication;    ///< exposed, inside passes: tensor, context and expert parallelism, ZeRO's gathers
    Seconds bubble;           ///< waiting for other stages, and their messages
    Seconds synchronisation;  ///< of gradients and parameters, as far as it is exposed
    Seconds optimizer;

    Seconds total() const { return compute + recomputation + communication + bubble + synchronisation + optimizer; }
};

struct Estimate {
    TimeParts parts;
    Bytes memory;  ///< of the rank that needs most

    Seconds time() const { return parts.total(); }
};

/// Estimates plans of one subject; may be asked by several threads. The subject and the pieces must outlive it.
class Estimator {
public:
    Estimator(const Subject& subject, Pieces& pieces);

    /// Passes by the pipeline recurrence (of few passes, extrapolated), then on each stage what gradients, optimizer
    /// and parameters still take: the stage that takes longest from its first pass on sets the period.
    Estimate estimate(const plan::Plan& plan);
    /// Memory alone.
    Bytes memory(const plan::Plan& plan);

private:
    const std::vector<Seconds>& messages(const plan::Mesh& mesh, Bytes bytes);

    const Subject& subject_;
    Pieces& pieces_;
    int blocks_ = 0;  ///< of the model
    std::mutex mutex_;
    std::map<std::tuple<int, int, int, int, double>, std::vector<Seconds>> messages_;
};

}  // namespace lockstep::search
