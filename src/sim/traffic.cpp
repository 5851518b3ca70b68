#include "sim/traffic.hpp"

#include <algorithm>

#include "cost/peer.hpp"

namespace lockstep::sim {

namespace {

/// A link counts as never full up to this: capacities and rates are rounded.
constexpr double tolerance = 1e-9;

std::vector<std::int32_t> ranks_of(const step::StepGraph& graph, const Shapes& shapes, std::int32_t shape, int rank) {
    if (shapes.is_collective(shape)) {
        const auto communicator = shapes.collective(shape).communicator;
        const auto members = step::members(graph.mesh, graph.communicators[communicator.index()], rank);
        return {members.begin(), members.end()};
    }
    std::vector<std::int32_t> ranks{rank};
    const step::P2PGroup& group = shapes.messages(shape);
    for (const auto* messages : {&group.sends, &group.receives})
        for (const step::Message& m : *messages) ranks.push_back(cost::peer_rank(graph.mesh, rank, m.peer));
    return ranks;
}

}  // namespace

Traffic find_traffic(const step::StepGraph& graph, const Shapes& shapes, const step::Durations& durations) {
    Traffic traffic;
    traffic.links = durations.links();
    const auto ranks = static_cast<std::size_t>(graph.mesh.ranks());
    traffic.instance_of.assign(shapes.all.size(), std::vector<std::int32_t>(ranks, -1));
    for (int rank = 0; rank < graph.mesh.ranks(); ++rank) {
        const auto stage = static_cast<std::size_t>(graph.mesh.coordinates(rank).pp);
        for (const std::int32_t shape : shapes.of_class[graph.class_of_stage[stage].index()]) {
            if (traffic.instance(shape, rank) >= 0) continue;
            const auto number = static_cast<std::int32_t>(traffic.instances.size());
            Instance instance{shape, shapes.is_collective(shape), ranks_of(graph, shapes, shape, rank), {}};
            if (!traffic.links.empty()) instance.loads = durations.loads(graph, rank, shapes.example(shape));
            for (std::size_t i = 0; i < instance.carriers(); ++i)
                traffic.instance_of[static_cast<std::size_t>(shape)][static_cast<std::size_t>(instance.ranks[i])] =
                    number;
            traffic.instances.push_back(std::move(instance));
        }
    }
    return traffic;
}

void drop_idle_links(Traffic& traffic, const Likeness& likeness, const std::vector<std::vector<Bandwidth>>& most_rate) {
    std::vector<Bandwidth> most(traffic.links.size());
    for (const Instance& instance : traffic.instances) {
        Bandwidth rate;
        for (std::size_t i = 0; i < instance.carriers(); ++i)
            rate =
                std::max(rate, most_rate[likeness.kind(instance.ranks[i])][static_cast<std::size_t>(instance.shape)]);
        for (const step::LinkLoad& load : instance.loads)
            most[static_cast<std::size_t>(load.link)] += load.share * rate;
    }
    for (Instance& instance : traffic.instances)
        std::erase_if(instance.loads, [&](const step::LinkLoad& load) {
            const auto link = static_cast<std::size_t>(load.link);
            return most[link] <= traffic.links[link] * (1 + tolerance);
        });
}

}  // namespace lockstep::sim
