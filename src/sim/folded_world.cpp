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

/// Ranks of each group among those of its representative's communications.
std::vector<std::vector<std::int64_t>> count_members(const Shapes& shapes, const Traffic& traffic,
                                                     const Folding& folding) {
    std::vector<std::vector<std::int64_t>> counts;
    for (const RankGroup& group : folding.groups) {
        auto& own = counts.emplace_back(shapes.all.size(), 0);
        for (const std::int32_t shape : shapes.of_class[group.rank_class.index()]) {
            const std::int32_t number = traffic.instance(shape, group.representative);
            for (const std::int32_t rank : traffic.instances[static_cast<std::size_t>(number)].ranks)
                if (folding.group(rank) == folding.group(group.representative)) ++own[static_cast<std::size_t>(shape)];
        }
    }
    return counts;
}

}  // namespace

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
    world.members_of_shape = count_members(shapes, world.traffic, world.folding);
    for (Instance& instance : world.traffic.instances) instance.loads = {};  // the folding's uses say it now
    return world;
}

}  // namespace lockstep::sim
