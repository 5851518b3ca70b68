#include "sim/folded_world.hpp"

#include <algorithm>

namespace lockstep::sim {

namespace {

Bandwidth rate_alone(const TapeOp& op) {
    return op.communication.transfer.value > 0 ? op.communication.wire / op.communication.transfer : Bandwidth{};
}

std::vector<std::vector<Bandwidth>> most_rates(const std::vector<Tape>& tapes, std::size_t shapes) {
    std::vector<std::vector<Bandwidth>> most;
    for (const Tape& tape : tapes) {
        auto& own = most.emplace_back(shapes);
        for (const TapeOp& op : tape.ops)
            if (op.shape >= 0) {
                Bandwidth& known = own[static_cast<std::size_t>(op.shape)];
                known = std::max(known, rate_alone(op));
            }
    }
    return most;
}

}  // namespace

std::int64_t FoldedWorld::members(std::int32_t group, std::int32_t shape) const {
    const int rank = folding.groups[static_cast<std::size_t>(group)].representative;
    const Instance& instance = traffic.instances[static_cast<std::size_t>(traffic.instance(shape, rank))];
    return std::ranges::count_if(instance.ranks, [&](std::int32_t member) { return folding.group(member) == group; });
}

FoldedWorld fold_world(const step::StepGraph& graph, const step::Durations& durations, Seconds host_per_op,
                       const machine::Variation& variation, Fold how) {
    FoldedWorld world;
    const Shapes shapes = find_shapes(graph);
    world.likeness = find_likeness(graph, shapes, durations, speed_profiles(variation, graph.placement));
    for (const RankKind& kind : world.likeness.kinds)
        world.tapes.push_back(
            make_tape(graph, graph.classes[kind.rank_class.index()], kind.example, shapes, durations, host_per_op));
    world.traffic = find_traffic(graph, shapes, durations);
    drop_idle_links(world.traffic, world.likeness, most_rates(world.tapes, shapes.all.size()));
    world.folding = fold(graph, shapes, world.likeness, world.traffic, how);
    for (Instance& instance : world.traffic.instances) instance.loads = {};  // the folding's uses say it now
    return world;
}

}  // namespace lockstep::sim
