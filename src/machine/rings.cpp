#include "machine/rings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "machine/ring_search.hpp"

namespace lockstep::machine {

namespace {

/// The rate of the slowest single NVLink at these GPUs; 0 when there is none.
Bandwidth slowest_nvlink(const Topology& topology, const std::vector<int>& gpus) {
    Bandwidth slowest;
    for (const int gpu : gpus)
        for (const LinkId id : topology.links_of(topology.gpu(gpu))) {
            const Link& link = topology.links[id.index()];
            if (link.kind != LinkKind::nvlink) continue;
            const Bandwidth one = link.per_direction / link.count;
            if (slowest.value == 0 || one < slowest) slowest = one;
        }
    return slowest;
}

LinkCounts direct_links(const Topology& topology, const std::vector<int>& gpus) {
    LinkCounts counts(gpus.size(), std::vector<int>(gpus.size(), 0));
    for (std::size_t i = 0; i < gpus.size(); ++i)
        for (std::size_t j = 0; j < gpus.size(); ++j)
            for (const LinkId id : topology.links_of(topology.gpu(gpus[i]))) {
                const Link& link = topology.links[id.index()];
                const bool joins = other_end(link, topology.gpu(gpus[i])) == topology.gpu(gpus[j]);
                if (i != j && link.kind == LinkKind::nvlink && joins) counts[i][j] += link.count;
            }
    return counts;
}

std::vector<int> named(const std::vector<int>& ring, const std::vector<int>& gpus) {
    std::vector<int> result;
    for (const int i : ring) result.push_back(gpus[static_cast<std::size_t>(i)]);
    return result;
}

/// A switch joins any two ports, so each NVLink of the GPU with the fewest is one channel: half of them around the GPUs
/// in order, half the other way round.
std::vector<std::vector<int>> rings_through_switch(const Topology& topology, const std::vector<int>& gpus) {
    int fewest = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const std::size_t next = (i + 1) % gpus.size();
        const Route route = find_route(topology, topology.gpu(gpus[i]), topology.gpu(gpus[next]));
        const int width = route.nvlinks;
        if (width == 0) return {};
        fewest = i == 0 ? width : std::min(fewest, width);
    }
    std::vector<int> reversed = gpus;
    std::reverse(reversed.begin() + 1, reversed.end());
    std::vector<std::vector<int>> rings;
    for (int i = 0; i < fewest; ++i) rings.push_back(i % 2 == 0 ? gpus : reversed);
    return rings;
}

bool are_on_switch(const Topology& topology, const std::vector<int>& gpus) {
    return std::ranges::all_of(gpus, [&](int gpu) {
        return std::ranges::any_of(topology.links_of(topology.gpu(gpu)), [&](LinkId id) {
            const Link& link = topology.links[id.index()];
            const VertexId end = other_end(link, topology.gpu(gpu));
            return topology.vertices[end.index()].kind == VertexKind::nvswitch;
        });
    });
}

/// The GPUs such that each next one is the nearest of those not yet visited.
std::vector<int> nearest_neighbour_order(const Topology& topology, const std::vector<int>& gpus) {
    std::vector<int> order{gpus.front()};
    std::vector<int> left(gpus.begin() + 1, gpus.end());
    while (!left.empty()) {
        const auto nearest = std::ranges::min_element(left, {}, [&](int gpu) {
            return find_route(topology, topology.gpu(order.back()), topology.gpu(gpu)).proximity;
        });
        order.push_back(*nearest);
        left.erase(nearest);
    }
    return order;
}

/// One ring; a link (in one direction) that k hops cross gives each 1/k of its rate.
RingChannels ring_over_pcie(const Topology& topology, const std::vector<int>& gpus) {
    RingChannels result{{nearest_neighbour_order(topology, gpus)}, {}, Proximity::self};
    const std::vector<int>& ring = result.rings.front();
    std::map<std::pair<LinkId, VertexId>, int> flows;  // (link, the end it is entered at)
    for (std::size_t i = 0; i < ring.size(); ++i) {
        VertexId at = topology.gpu(ring[i]);
        const Route route = find_route(topology, at, topology.gpu(ring[(i + 1) % ring.size()]));
        result.proximity = std::max(result.proximity, route.proximity);
        if (route.nvlinks > 0) continue;  // an NVLink on the way is never the narrowest
        for (const LinkId id : route.links) {
            ++flows[{id, at}];
            at = other_end(topology.links[id.index()], at);
        }
    }
    for (const auto& [place, count] : flows) {
        const Bandwidth share = topology.links[place.first.index()].per_direction / count;
        if (result.per_channel.value == 0 || share < result.per_channel) result.per_channel = share;
    }
    return result;
}

}  // namespace

RingChannels find_rings(const Topology& topology, const std::vector<int>& gpus) {
    if (gpus.size() < 2) throw LogicError("a ring wants at least 2 GPUs");
    if (std::set(gpus.begin(), gpus.end()).size() != gpus.size()) throw LogicError("a GPU is named twice in a ring");
    std::vector<std::vector<int>> rings;
    if (are_on_switch(topology, gpus)) {
        rings = rings_through_switch(topology, gpus);
    } else {
        for (const auto& ring : find_directed_rings(direct_links(topology, gpus))) rings.push_back(named(ring, gpus));
    }
    if (!rings.empty()) return {std::move(rings), slowest_nvlink(topology, gpus), Proximity::nvlink};
    return ring_over_pcie(topology, gpus);
}

std::optional<RingChannels> rings_of_node(const Topology& topology) {
    if (topology.gpus() < 2) return std::nullopt;
    std::vector<int> gpus(static_cast<std::size_t>(topology.gpus()));
    std::iota(gpus.begin(), gpus.end(), 0);
    return find_rings(topology, gpus);
}

}  // namespace lockstep::machine
