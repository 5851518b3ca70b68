#include "sim/likeness.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::sim {

namespace {

void check_speeds(const machine::RankSpeed& entry, const machine::Placement& placement) {
    for (const int rank : entry.ranks)
        if (rank < 0 || rank >= placement.ranks)
            throw InputError(fmt::format("variation names rank {}, and the world has ranks 0 to {}; name one of these",
                                         rank, placement.ranks - 1));
    for (const int node : entry.nodes)
        if (node < 0 || node >= placement.nodes())
            throw InputError(fmt::format("variation names node {}, and the world has nodes 0 to {}; name one of these",
                                         node, placement.nodes() - 1));
    for (const machine::SpeedChange& change : entry.profile)
        if (!(change.speed > 0) || change.from.value < 0)
            throw InputError(fmt::format("a speed of {} from {} s on (a rank would never finish); use speeds above 0",
                                         change.speed, change.from.value));
}

/// The product of two profiles: a step wherever one of them has one.
SpeedProfile product(const SpeedProfile& a, const SpeedProfile& b) {
    SpeedProfile result;
    double speed_a = 1, speed_b = 1;
    for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
        const bool takes_a = j == b.size() || (i < a.size() && a[i].from <= b[j].from);
        const Picoseconds from = takes_a ? a[i].from : b[j].from;
        (takes_a ? speed_a : speed_b) = takes_a ? a[i++].speed : b[j++].speed;
        if (!result.empty() && result.back().from == from) result.pop_back();
        result.push_back({from, speed_a * speed_b});
    }
    return result;
}

}  // namespace

std::vector<SpeedProfile> speed_profiles(const machine::Variation& variation, const machine::Placement& placement) {
    std::vector<SpeedProfile> profiles(static_cast<std::size_t>(placement.ranks));
    for (const machine::RankSpeed& entry : variation.speeds) {
        check_speeds(entry, placement);
        SpeedProfile own;
        for (const machine::SpeedChange& change : entry.profile)
            own.push_back({to_picoseconds(change.from), change.speed});
        for (int rank = 0; rank < placement.ranks; ++rank) {
            const bool is_named = entry.is_everywhere || std::ranges::count(entry.ranks, rank) > 0 ||
                                  std::ranges::count(entry.nodes, placement.node_of(rank)) > 0;
            auto& profile = profiles[static_cast<std::size_t>(rank)];
            if (is_named) profile = product(profile, own);
        }
    }
    return profiles;
}

Likeness find_likeness(const step::StepGraph& graph, const Shapes& shapes, const step::Durations& durations,
                       std::vector<SpeedProfile> speeds) {
    using Key = std::tuple<std::int32_t, std::vector<std::int64_t>, SpeedProfile>;
    Likeness likeness;
    std::map<Key, std::int32_t> known;
    speeds.resize(static_cast<std::size_t>(graph.mesh.ranks()));
    for (int rank = 0; rank < graph.mesh.ranks(); ++rank) {
        const auto stage = static_cast<std::size_t>(graph.mesh.coordinates(rank).pp);
        const step::RankClassId rank_class = graph.class_of_stage[stage];
        std::vector<std::int64_t> like = durations.likeness(graph, rank);
        for (const std::int32_t shape : shapes.of_class[rank_class.index()]) {
            if (shapes.is_collective(shape)) continue;
            const auto time = durations.communication(graph, rank, shapes.example(shape));
            for (const double part : {time.latency.value, time.transfer.value, time.wire.value})
                like.push_back(std::bit_cast<std::int64_t>(part));
        }
        SpeedProfile& profile = speeds[static_cast<std::size_t>(rank)];
        const auto [entry, is_new] = known.try_emplace({rank_class.value, std::move(like), profile},
                                                       static_cast<std::int32_t>(likeness.kinds.size()));
        if (is_new) likeness.kinds.push_back({rank_class, rank, std::move(profile)});
        likeness.kind_of_rank.push_back(entry->second);
    }
    return likeness;
}

}  // namespace lockstep::sim
