#include "sim/folding.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::sim {

std::vector<std::int32_t> Folding::groups_of(const plan::Mesh& mesh, int rank,
                                             const step::Communicator& communicator) const {
    std::vector<std::int32_t> result;
    for (int member : step::members(mesh, communicator, rank))
        result.push_back(group_of_rank[static_cast<std::size_t>(member)]);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

Folding fold_by_stage(const step::StepGraph& graph) {
    const auto stages = static_cast<std::size_t>(graph.mesh.pp);
    if (graph.class_of_stage.size() != stages) throw LogicError("a step graph whose stages and classes don't agree");
    Folding folding;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        plan::Coordinates first;
        first.pp = static_cast<int>(stage);
        folding.groups.push_back(
            {graph.class_of_stage[stage], graph.mesh.rank(first), graph.mesh.ranks() / graph.mesh.pp});
    }
    for (int rank = 0; rank < graph.mesh.ranks(); ++rank)
        folding.group_of_rank.push_back(graph.mesh.coordinates(rank).pp);
    return folding;
}

}  // namespace lockstep::sim
