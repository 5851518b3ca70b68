#include "analysis/collective.hpp"

#include "cost/collective_cost.hpp"
#include "step/collective_step.hpp"

namespace lockstep::analysis {

std::optional<CollectiveFindings> find_collective(const step::StepGraph& graph, Seconds time) {
    const step::Collective* const collective = step::only_collective(graph);
    if (collective == nullptr) return std::nullopt;
    const int ranks = graph.mesh.ranks();
    CollectiveFindings found{collective->kind, collective->dtype, cost::buffer_bytes(*collective, ranks), time, {}, {}};
    found.algorithm = found.buffer / time;
    found.bus = found.algorithm * bus_factor(found.kind, ranks);
    return found;
}

}  // namespace lockstep::analysis
